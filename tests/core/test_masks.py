from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.stats import norm
from torch import nn

from core.attribution.perturbation.expected_mask import bayesian_teaching
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import stream
from core.teaching.expectation import WeightedMasks
from core.teaching.masks import MaskPrior
from tests.core.networks import SIDE, awkward, pictures, unit


def dense_kernel(height, width, scale):
    """The kernel over all pixels, the way one must never compute it."""
    y, x = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    points = np.stack([y.ravel(), x.ravel()], 1)
    squared = ((points[:, None] - points[None]) ** 2).sum(-1)
    return np.exp(-squared / (2 * scale**2))


def test_factors_reproduce_the_full_kernel():
    """The separable factors against the dense kernel of all pixels, on an oblong grid."""
    prior = MaskPrior(12, 9, length_scale=0.25)
    rows, columns = prior._factors
    separable = np.kron((rows @ rows.T).numpy(), (columns @ columns.T).numpy())
    np.testing.assert_allclose(separable, dense_kernel(12, 9, 0.25 * 9), atol=2e-6)


def test_empirical_covariance_of_samples_is_the_kernel():
    prior = MaskPrior(8, 6, length_scale=0.3, mean=0.2, amplitude=1.5)
    draws = torch.logit(prior.sample(40_000, stream(3, 0)).double()).flatten(1).numpy()
    expected = 1.5**2 * dense_kernel(8, 6, 0.3 * 6)
    # The standard error of a covariance of n normal pairs is at most sqrt(2/n) sigma^2 = .016; 5 of them.
    np.testing.assert_allclose(np.cov(draws.T), expected, atol=0.08)
    np.testing.assert_allclose(draws.mean(0), 0.2, atol=5 * 1.5 / 200)


def test_expected_mask_of_the_papers_prior():
    """A sigmoid this steep is a step: E[m] = P(g > 0) = Phi(-1) = .1587 up to the sigmoid's width of 1 in 100."""
    assert MaskPrior(8, 8).expected_value == pytest.approx(norm.cdf(-1), abs=2e-4)
    draws = MaskPrior(24, 24).sample(4000, stream(0, 0))
    assert float(draws.mean()) == pytest.approx(norm.cdf(-1), abs=0.01)


def test_variance_100_would_leave_every_mask_empty():
    """The slip of the paper's text: with amplitude 10 (variance 100) nothing is ever open."""
    assert float(MaskPrior(24, 24, amplitude=10.0).sample(200, stream(0, 0)).max()) < 1e-3


def test_blocks_do_not_depend_on_how_many_are_asked_for():
    prior = MaskPrior(8, 8)
    few = torch.cat(list(prior.blocks(70, seed=5)))
    many = torch.cat(list(prior.blocks(200, seed=5)))
    assert few.shape == (70, 8, 8)
    assert torch.equal(few, many[:70])


class Constant(nn.Module):
    def forward(self, x):
        return torch.tensor([[0.3, -0.2]]).expand(len(x), 2)


def test_a_constant_classifier_gives_the_prior_mean_within_its_standard_error():
    """Identity A17 of the oracles: nothing learned where the classifier does not look."""
    classifier = Classifier(Constant(), unit, name="constant")
    explanation = bayesian_teaching(classifier, pictures(1), [0], samples=4000, estimator="plain")
    z = (explanation.map - explanation.zero) / explanation.error
    assert explanation.certificates[0].effective_samples == pytest.approx(4000)
    assert float(z.abs().max()) < 5
    assert 0.7 < float(z.std()) < 1.3  # the stated error is neither too small nor too large


def test_the_control_variate_gives_a_constant_classifier_the_prior_mean_exactly():
    explanation = bayesian_teaching(Classifier(Constant(), unit, name="constant"), pictures(1), [0], samples=128)
    torch.testing.assert_close(explanation.map, torch.full((1, SIDE, SIDE), explanation.zero), rtol=0, atol=1e-6)
    assert float(explanation.error.max()) < 1e-6


def test_the_control_variate_keeps_the_expectation_and_states_its_error():
    """Unbiased against a plain run of 30 times the masks; its stated error is its own scatter, and smaller."""
    classifier, images = awkward(), pictures(1)

    def run(samples, estimator, seed):
        generator = torch.Generator().manual_seed(seed)
        return bayesian_teaching(classifier, images, [1], samples=samples, estimator=estimator, generator=generator)

    runs = [run(800, "controlled", seed) for seed in range(12)]
    maps, errors = torch.stack([r.map for r in runs]), torch.stack([r.error for r in runs])
    truth = run(24_000, "plain", 99)
    z = (maps.mean(0) - truth.map) / (errors.mean(0) ** 2 / 12 + truth.error**2).sqrt()
    assert float(z.abs().max()) < 5
    assert 0.8 < float((maps.std(0) / errors.mean(0)).mean()) < 1.25
    assert float((errors.mean(0) / run(800, "plain", 0).error).mean()) < 0.9


class Patch(nn.Module):
    """Says class 0 by how bright the patch rows 2-4, columns 7-9 is."""

    def forward(self, x):
        seen = x[:, :, 2:5, 7:10].mean((1, 2, 3))
        return torch.stack([6 * seen, torch.zeros_like(seen)], 1)


def test_the_map_finds_the_patch_a_planted_classifier_looks_at():
    classifier = Classifier(Patch(), unit, name="patch")
    image = torch.ones(1, 3, SIDE, SIDE)
    explanation = bayesian_teaching(classifier, image, [0], samples=2000, fill="black")
    peak = int(explanation.map[0].argmax())
    assert (peak // SIDE, peak % SIDE) == pytest.approx((3, 8), abs=1)
    assert explanation.map[0, 3, 8] > explanation.zero + 5 * explanation.error[0, 3, 8]


def test_against_a_slow_re_implementation():
    """The formulas of the paper, in a loop over the same masks, without streams, blocks or chunks."""
    classifier, images = awkward(), pictures(1)
    explanation = bayesian_teaching(
        classifier,
        images,
        [1],
        samples=100,
        fill="mean",
        length_scale=0.2,
        estimator="plain",
        generator=torch.Generator().manual_seed(9),
    )
    seed = explanation.certificates[0].seed
    fill = classifier.fill("mean")
    masks = list(itertools.chain(*MaskPrior(SIDE, SIDE, 0.2).blocks(100, seed)))
    q = np.array([float(classifier.probabilities((m * images[0] + (1 - m) * fill)[None])[0, 1]) for m in masks])
    m = np.stack([mask.numpy() for mask in masks]).astype(float)
    expected = np.einsum("n,nhw->hw", q, m) / q.sum()
    error = np.sqrt(np.einsum("n,nhw->hw", q**2, (m - expected) ** 2)) / q.sum()
    np.testing.assert_allclose(explanation.map[0].numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(explanation.error[0].numpy(), error, rtol=1e-4)
    assert explanation.certificates[0].effective_samples == pytest.approx(q.sum() ** 2 / (q**2).sum(), rel=1e-5)


def test_full_enumeration_of_bernoulli_masks():
    """Identity A17: over all 2^9 binary masks the weighted sums give E[m|c] = RISE * p / E[score] exactly."""
    masks = torch.tensor(list(itertools.product([0.0, 1.0], repeat=9))).view(-1, 3, 3)
    weights = torch.rand(1, len(masks), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    sums = WeightedMasks(1, 3, 3, 0.5)
    for part in torch.arange(len(masks)).split(100):
        sums.add(masks[part], weights[:, part])
    rise = torch.einsum("n,nhw->hw", weights[0], masks.double()) / (len(masks) * 0.5)
    expected = rise * 0.5 / weights.mean()
    torch.testing.assert_close(sums.estimate_plain()[0][0], expected, rtol=1e-12, atol=0)


def test_chunk_size_does_not_change_the_map():
    classifier, images = awkward(), pictures(2)
    maps = [bayesian_teaching(classifier, images, [0, 1], samples=130, chunk=c).map for c in (1, 17, 256)]
    for other in maps[1:]:
        torch.testing.assert_close(maps[0], other, rtol=1e-5, atol=1e-7)


class Picky(nn.Module):
    """Almost never says class 1: the weights of a hard picture."""

    def forward(self, x):
        seen = x.mean((1, 2, 3))
        return torch.stack([torch.zeros_like(seen), 40 * seen], 1)


def test_a_map_of_few_effective_samples_warns():
    classifier = Classifier(Picky(), unit, name="picky")
    certificate = bayesian_teaching(classifier, torch.ones(1, 3, SIDE, SIDE), [1], fill="black").certificates[0]
    assert certificate.effective_samples < 100
    assert "much of this heatmap is noise" in certificate.warnings[0]


class Never(nn.Module):
    def forward(self, x):
        return torch.tensor([[0.0, -2000.0]]).expand(len(x), 2)


def test_a_class_never_given_is_finite_and_said():
    certificate = bayesian_teaching(Classifier(Never(), unit, name="never"), pictures(1), [1], samples=64).certificates[
        0
    ]
    assert certificate.effective_samples == 0
    assert "Only 0 of 64 masks contribute" in certificate.warnings[0]


def test_a_length_scale_above_one_is_px():
    shares, px = MaskPrior(12, 9, length_scale=0.5), MaskPrior(12, 9, length_scale=4.5)
    assert torch.equal(shares.sample(3, stream(1, 0)), px.sample(3, stream(1, 0)))


@pytest.mark.parametrize("estimator", ["plain", "controlled"])
def test_a_tolerance_ends_a_map_when_its_error_is_below_it_and_not_before(estimator):
    """Against maps of fixed numbers of masks: the first multiple of 64 whose stated error is small enough."""
    classifier = Classifier(Patch(), unit, name="patch")
    picture = torch.ones(1, 3, SIDE, SIDE)
    fixed = {
        count: bayesian_teaching(classifier, picture, [0], samples=count, estimator=estimator)
        for count in range(64, 64 * 31, 64)
    }
    errors = {count: float(found.error.max()) for count, found in fixed.items()}
    tolerance = 1.0001 * errors[64 * 20]
    expected = next(
        count
        for count, found in fixed.items()
        if errors[count] <= tolerance and found.certificates[0].effective_samples >= 100
    )
    settings = {"samples": 5000, "estimator": estimator, "tolerance": tolerance}
    ended = bayesian_teaching(classifier, picture, [0], **settings)
    assert ended.certificates[0].samples == expected < 5000
    assert ended.certificates[0].standard_error <= tolerance
    assert ended.certificates[0].warnings == ()
    torch.testing.assert_close(ended.map, fixed[expected].map, rtol=1e-6, atol=1e-7)
    both = bayesian_teaching(classifier, torch.cat([0.2 * picture, picture]), [0, 0], **settings)
    assert torch.equal(both.map[1], ended.map[0])  # each ends at its own time


def test_a_tolerance_out_of_reach_is_said():
    certificate = bayesian_teaching(awkward(), pictures(1), [0], samples=128, tolerance=1e-9).certificates[0]
    assert certificate.samples == 128
    assert "after 128 masks, above the tolerance of 1e-09. Raise 'samples'." in certificate.warnings[-1]


def test_one_pass_serves_several_classes_of_a_image(monkeypatch):
    """The masked pictures shown are counted; the maps are those asked for one by one, bit for bit."""
    classifier, images = awkward(), pictures(2)
    shown = []
    original = Classifier.logits
    monkeypatch.setattr(
        Classifier, "logits", lambda self, inputs, **more: shown.append(len(inputs)) or original(self, inputs, **more)
    )
    inputs, targets = images[[0, 0, 1, 0]], [0, 1, 2, 2]
    together = bayesian_teaching(classifier, inputs, targets, samples=128)
    assert sum(shown) == 2 * 128 + 4  # and the four answers the certificates state
    alone = [bayesian_teaching(classifier, inputs[i : i + 1], targets[i : i + 1], samples=128) for i in range(4)]
    torch.testing.assert_close(together.map, torch.cat([found.map for found in alone]), rtol=1e-6, atol=1e-7)


def test_bad_settings_are_refused():
    with pytest.raises(ForetellError, match="at least 2 masks"):
        bayesian_teaching(awkward(), pictures(1), [0], samples=1)
    with pytest.raises(ForetellError, match=r"length scale 13 .*or px up to 12\."):
        bayesian_teaching(awkward(), pictures(1), [0], length_scale=13)
    with pytest.raises(ForetellError, match=r"tolerance=-0\.1 must not be negative"):
        bayesian_teaching(awkward(), pictures(1), [0], tolerance=-0.1)
    with pytest.raises(ForetellError, match="amplitude"):
        bayesian_teaching(awkward(), pictures(1), [0], amplitude=0)


def test_few_masks_that_all_count_are_not_said_not_to_count():
    """A network that says the same of every mask gives all of them one weight."""

    class Same(torch.nn.Module):
        def forward(self, x):
            return torch.tensor([[1.0, 0.0]]).expand(len(x), 2)

    classifier = Classifier(Same(), unit, name="same")
    (certificate,) = bayesian_teaching(classifier, pictures(1), [0], samples=64).certificates
    assert certificate.effective_samples == pytest.approx(64)
    few, empty = certificate.warnings
    assert few == "Only 64 masks were used: much of this heatmap is noise. Raise 'samples'."
    assert empty.startswith("This heatmap is empty")
    (certificate,) = bayesian_teaching(classifier, pictures(1), [0], samples=128).certificates
    assert certificate.warnings == (empty,)
