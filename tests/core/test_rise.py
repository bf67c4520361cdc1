from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from core.attribution.perturbation.rise import GridMasks, estimate, rise
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.masked import iterate_masked_logits, iterate_masked_scores
from core.teaching.expectation import WeightedMasks
from tests.core.networks import SIDE, awkward, pictures, unit

WEIGHTS = torch.tensor([1.5, -2.0, 0.25, 3.0], dtype=torch.float64)


def every_mask(p_in_quarters: int) -> torch.Tensor:
    """All masks of 2 x 2 pixels, each as often as independent pixels with probability p make it: (4^4, 2, 2)."""
    coins = [1.0] * p_in_quarters + [0.0] * (4 - p_in_quarters)
    return torch.tensor(list(itertools.product(coins, repeat=4))).view(-1, 2, 2)


def enumerated(p_in_quarters: int) -> WeightedMasks:
    masks = every_mask(p_in_quarters)
    sums = WeightedMasks(1, 2, 2, p_in_quarters / 4)
    for part in masks.split(50):
        sums.add(part, (part.flatten(1).double() @ WEIGHTS)[None])
    return sums


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_closed_form_of_a_linear_network(quarters):
    """Independent pixels, fill 0, f = w . x: S_i = (1 - p) w_i x_i + p f(x), of which p f(x) is the level."""
    p, sums = quarters / 4, enumerated(quarters)
    plain, _ = estimate(sums, p, "plain")
    centred, _ = estimate(sums, p, "centred")
    own = (1 - p) * WEIGHTS.view(1, 2, 2)
    torch.testing.assert_close(plain, own + p * WEIGHTS.sum(), rtol=0, atol=1e-12)
    torch.testing.assert_close(centred, own, rtol=0, atol=1e-12)


def test_it_is_proportional_to_the_expectation_of_bayesian_teaching():
    """For the same masks and weights E[m | c] = S p / E[q]."""
    sums = enumerated(2)
    plain, _ = estimate(sums, 0.5, "plain")
    expectation, _ = sums.estimate_plain()
    torch.testing.assert_close(expectation, plain * 0.5 / (sums.q / sums.count), rtol=0, atol=1e-14)


@pytest.mark.parametrize("estimator", ["plain", "centred"])
def test_the_sums_equal_a_slow_reimplementation(estimator):
    """Mean and standard error of the written-out terms, mask by mask."""
    rng = torch.Generator().manual_seed(3)
    masks, q = torch.rand(40, 2, 3, generator=rng), torch.rand(2, 40, generator=rng, dtype=torch.float64)
    sums = WeightedMasks(2, 2, 3, 0.5)
    sums.add(masks[:25], q[:, :25])
    sums.add(masks[25:], q[:, 25:])
    m, r = masks.double(), q.clone()
    if estimator == "centred":
        m, r = m - m.mean(0), r - r.mean(1, keepdim=True)
    terms = torch.stack([torch.stack([r[b, i] * m[i] for i in range(40)]) for b in range(2)]) / 0.3
    found, error = estimate(sums, 0.3, estimator)
    torch.testing.assert_close(found, terms.mean(1), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(error, terms.std(1) / 40**0.5, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("estimator", ["plain", "centred"])
def test_maps_of_other_seeds_differ_by_the_stated_error(estimator):
    """Two runs differ by sqrt(2) standard errors in the root mean square."""
    classifier, image = awkward(), pictures(1)
    runs = [
        rise(
            classifier, image, [1], generator=torch.Generator().manual_seed(s), samples=200, grid=4, estimator=estimator
        )
        for s in range(12)
    ]
    maps = torch.stack([run.map[0] for run in runs]).double()
    stated = torch.stack([run.error[0] for run in runs]).double().square().mean()
    assert float(maps.var(0).mean() / stated) == pytest.approx(1, abs=0.5)


def test_a_linear_network_within_the_stated_error():
    """With smooth masks, in expectation: S_i = sum_j w_j x_j cov(m_i, m_j) / p, from masks of another seed."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 2))
    classifier, image = Classifier(network, unit, name="linear"), pictures(1)
    gave = network[1].weight[1].detach().view(3, SIDE, SIDE) * (image[0] - classifier.fill("mean"))
    found = rise(classifier, image, [1], samples=2000, grid=3, output="logit")
    masks = GridMasks(SIDE, SIDE, 3, 0.5).sample(40_000, torch.Generator().manual_seed(5)).flatten(1).double()
    expected = torch.cov(masks.T) @ gave.sum(0).flatten().double() / 0.5
    z = (found.map[0].flatten().double() - expected) / found.error[0].flatten().double()
    assert z.square().mean().sqrt() < 2
    assert expected.abs().max() > 5 * found.error.max()


def test_zero_is_the_level_of_a_classifier_that_does_not_look():
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 2))
    nn.init.zeros_(network[1].weight)
    classifier = Classifier(network, unit, name="blind")
    level = float(classifier.probabilities(pictures(1))[0, 1])
    centred = rise(classifier, pictures(2), [1, 1], samples=100)
    assert centred.map.abs().max() < 1e-7
    assert centred.zero == 0
    plain = rise(classifier, pictures(1), [1], samples=4000, estimator="plain")
    assert float(plain.zeros[0]) == pytest.approx(level, abs=1e-6)
    assert plain.certificates[0].parameters["level"] == pytest.approx(level, abs=1e-6)
    assert float(((plain.map - level) / plain.error).square().mean().sqrt()) < 2


def test_every_image_has_its_own_zero():
    classifier, images = awkward(), pictures(2)
    together = rise(classifier, images, [0, 1], samples=64, estimator="plain")
    levels = [certificate.parameters["level"] for certificate in together.certificates]
    assert levels[0] != pytest.approx(levels[1], rel=1e-3)
    torch.testing.assert_close(together.zeros, torch.tensor(levels), rtol=1e-6, atol=0)
    torch.testing.assert_close(together.evidence[1], together.map[1] - levels[1], rtol=1e-6, atol=1e-7)


def test_masks_are_bilinear_between_cells_and_of_mean_p():
    masks = GridMasks(20, 13, 4, 0.3).sample(20_000, torch.Generator().manual_seed(1))
    assert masks.shape == (20_000, 20, 13)
    assert masks.min() >= 0
    assert masks.max() <= 1
    # 5 standard errors of a 0/1 variable, of which bilinear values have less.
    assert (masks.mean(0) - 0.3).abs().max() < 5 * (0.21 / 20_000) ** 0.5
    # Neighbours differ by one bilinear step at most: 4 / 25 px down, 4 / 20 px across.
    assert masks.diff(dim=1).abs().max() <= 4 / 25 + 1e-6
    assert masks.diff(dim=2).abs().max() <= 4 / 20 + 1e-6


def test_masks_are_shifted():
    """Without shifts all masks of one row of cells would have their knots at the same pixels."""
    masks = GridMasks(16, 16, 2, 0.5).sample(400, torch.Generator().manual_seed(1))
    knots = masks.diff(n=2, dim=1).abs().gt(1e-4).any(2)
    assert len({tuple(row.nonzero().flatten().tolist()) for row in knots}) >= 8


def test_chunk_batch_and_length_share_the_draws():
    classifier, images = awkward(), pictures(2)
    one = rise(classifier, images, [0, 1], samples=100, chunk=7).map
    other = rise(classifier, images, [0, 1], samples=100).map
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    masks = GridMasks(SIDE, SIDE, 4, 0.5)
    short, long = (torch.cat(list(masks.blocks(count, seed=9))) for count in (70, 200))
    assert torch.equal(short, long[:70])


def test_scores_are_the_masked_images_probabilities():
    """Slow: mask by hand, one picture at a time."""
    classifier, images = awkward(), pictures(2)
    masks = GridMasks(SIDE, SIDE, 4, 0.5).sample(5, torch.Generator().manual_seed(2))
    fill, targets = classifier.fill("mean"), torch.tensor([2, 0])
    ((_, found),) = iterate_masked_scores(classifier, images, targets, [masks], fill=fill, output="probability")
    for b, target in enumerate(targets.tolist()):
        for i, mask in enumerate(masks):
            by_hand = mask * images[b] + (1 - mask) * fill
            expected = float(classifier.probabilities(by_hand[None])[0, target])
            assert float(found[b, i]) == pytest.approx(expected, rel=1e-4, abs=1e-7)


def test_no_more_masked_images_stand_in_memory_than_a_chunk(monkeypatch):
    """Catches a whole block masked at once: 64 pictures, whatever the budget."""
    classifier, seen = awkward(), []
    asked = classifier.logits

    def watched(inputs, **given):
        seen.append(len(inputs))
        return asked(inputs, **given)

    monkeypatch.setattr(classifier, "logits", watched)
    masks = GridMasks(SIDE, SIDE, 4, 0.5).sample(7, torch.Generator().manual_seed(2))
    list(iterate_masked_logits(classifier, pictures(2), [masks], fill=classifier.fill("mean"), chunk=3))
    assert seen == [3, 3, 1] * 2


@pytest.mark.parametrize(
    ("parameters", "says"), [({"samples": 1}, "at least 2"), ({"p": 1.0}, "between 0 and 1"), ({"grid": 0}, "1 cell")]
)
def test_bad_parameters_are_refused(parameters, says):
    with pytest.raises(ForetellError, match=says):
        rise(awkward(), pictures(1), [0], **parameters)
