"""The masks' posterior by sequential Monte Carlo, against closed forms and quadrature."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core.attribution.perturbation.expected_mask import bayesian_teaching
from core.attribution.records import cost_of
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.teaching.expectation import WeightedMasks
from core.teaching.masks import MaskPrior
from core.teaching.posterior import Population, estimate, posterior_mask
from tests.core.networks import SIDE, awkward, greedy, pictures, unit
from tests.core.test_masks import Constant, Patch, Picky, dense_kernel


def scatter(truth, prior, evidence, samples, seeds=12):
    """Distance from the truth in units of the stated error, (seeds, H, W), and the stated errors."""
    found = [posterior_mask(prior, evidence, samples, seed) for seed in range(seeds)]
    errors = torch.stack([f.error for f in found])
    return (torch.stack([f.map for f in found]) - truth) / errors, errors, found


def test_two_coefficients_against_gauss_hermite_quadrature():
    """A mask of two pixels has two coefficients: E[m | c] by quadrature over them, to 1e-6."""
    prior = MaskPrior(1, 2, length_scale=1.0, mean=0.3, amplitude=1.5)
    assert prior.rank == (1, 2)

    def evidence(masks):
        m = masks.double()
        return -20 * (m[:, 0, 0] - 0.9) ** 2 - 30 * (m[:, 0, 1] - 0.3) ** 2

    def quadrature(nodes):
        z, w = np.polynomial.hermite_e.hermegauss(nodes)
        grid = torch.tensor(np.stack(np.meshgrid(z, z), -1).reshape(-1, 1, 2), dtype=torch.float32)
        masks = prior.masks(grid).double()
        weights = torch.tensor(np.outer(w, w).ravel()) * evidence(masks).exp()
        return torch.einsum("n,nhw->hw", weights, masks) / weights.sum()

    truth = quadrature(160)
    torch.testing.assert_close(quadrature(140), truth, rtol=0, atol=1e-6)
    z, errors, _ = scatter(truth, prior, evidence, 2000)
    assert float(errors.max()) < 0.01
    assert float(z.abs().max()) < 4
    assert 0.7 < float(z.pow(2).mean().sqrt()) < 1.3


class Kriging:
    """Evidence that measures the Gaussian field at four pixels: its posterior is Gaussian, so E[m | c] is known."""

    def __init__(self, side=8, noise=0.4):
        self.prior = MaskPrior(side, side, length_scale=0.3, mean=0.0, amplitude=1.5)
        self.pixels = torch.tensor([0, side - 1, side * (side - 1), side * side - 1])
        self.measured, self.noise = torch.tensor([2.5, -2.5, -2.5, 2.5], dtype=torch.float64), noise

    def __call__(self, masks):
        field = torch.logit(masks.flatten(1)[:, self.pixels].double())
        return -((field - self.measured) ** 2).sum(1) / (2 * self.noise**2)

    def truth(self):
        side = self.prior.height
        kernel = torch.tensor(1.5**2 * dense_kernel(side, side, 0.3 * side))
        at = kernel[:, self.pixels]
        gain = at @ torch.linalg.inv(at[self.pixels] + self.noise**2 * torch.eye(4, dtype=torch.float64))
        mean, variance = gain @ self.measured, kernel.diagonal() - (gain * at).sum(1)
        z, w = np.polynomial.hermite_e.hermegauss(60)
        values = torch.sigmoid(mean[:, None] + variance.sqrt()[:, None] * torch.tensor(z)) @ torch.tensor(w)
        return (values / w.sum()).view(side, side)


def weighted(evidence, samples, seed):
    sums = WeightedMasks(1, evidence.prior.height, evidence.prior.width, evidence.prior.expected_value)
    for block in evidence.prior.blocks(samples, seed):
        sums.add(block, evidence(block).exp()[None])
    return sums


def test_a_hard_case_where_weighted_masks_fail_against_its_closed_form():
    """Fewer than 20 of 1000 weighted masks count and their error bar lies; the posterior's is its own scatter."""
    hard = Kriging()
    truth = hard.truth()
    plain = [weighted(hard, 1000, seed) for seed in range(12)]
    assert max(float(sums.effective) for sums in plain) < 20
    off = torch.stack([(m - truth) / e for m, e in (sums.estimate_plain() for sums in plain)])
    assert float(off.pow(2).mean().sqrt()) > 3

    z, errors, found = scatter(truth, hard.prior, hard, 1000)
    assert 0.7 < float(z.pow(2).mean().sqrt()) < 1.3
    assert float(z.abs().max()) < 6
    assert float(errors.mean()) < 0.09
    assert all(0.15 < share < 0.6 for f in found for share in f.diagnostics["acceptance"][1:])
    # 124 chains, but they descend from few of the first masks: that is what the error counts.
    assert all(f.diagnostics["lineages"] < 60 for f in found)
    # Two independent maps agree within what they state.
    apart = (found[0].map - found[1].map) / (errors[0] ** 2 + errors[1] ** 2).sqrt()
    assert float(apart.pow(2).mean().sqrt()) < 1.5


def test_more_masks_give_a_smaller_error_and_more_that_count():
    few, many = (posterior_mask(Kriging().prior, Kriging(), n, 0) for n in (500, 4500))
    assert float(few.error.mean() / many.error.mean()) == pytest.approx(3, rel=0.4)
    assert many.effective > 4 * few.effective


def test_runs_that_found_different_modes_state_their_distance():
    """Four runs of 100 lineages each, one in another mode: the error is that of four numbers, not of 400."""
    prior = MaskPrior(1, 2, length_scale=1.0, mean=0.0, amplitude=1.0)
    modes = torch.tensor([2.0, 2.0, 2.0, -2.0])[:, None] * torch.tensor([0.0, 1.0])
    noise = torch.randn(4, 100, 1, 2, generator=torch.Generator().manual_seed(0)) / 10
    runs = [Population(mode + n, torch.zeros(100), torch.arange(100)) for mode, n in zip(modes, noise, strict=True)]
    found = estimate(prior, runs)
    means = torch.stack([prior.masks(run.normal).mean(0) for run in runs]).double()
    torch.testing.assert_close(found.map, means.mean(0), rtol=1e-6, atol=0)
    assert found.diagnostics["agreement"] > 5
    assert found.diagnostics["lineages"] == pytest.approx(400)
    torch.testing.assert_close(found.error, means.std(0) / 2, rtol=0.05, atol=0)
    # Of one lineage each there are four numbers to begin with.
    four = estimate(prior, [Population(run.normal, run.evidence, torch.zeros(100)) for run in runs])
    assert four.diagnostics["agreement"] == pytest.approx(1)
    assert four.diagnostics["lineages"] == pytest.approx(4)
    torch.testing.assert_close(four.error, found.error, rtol=1e-3, atol=0)


def test_a_pixel_no_mask_opens_still_has_an_error():
    """Where all samples agree their scatter is 0, but what was not seen is not excluded."""
    prior = MaskPrior(8, 8)
    found = posterior_mask(prior, lambda masks: -200 * masks[:, 0, 0].double(), 400, 0)
    assert float(found.map[0, 0]) < 1e-3
    assert float(found.error[0, 0]) > 1e-4


def smc(network, image, targets, samples=1000, seed=0, **parameters):
    classifier = network if isinstance(network, Classifier) else Classifier(network, unit, name="planted")
    generator = torch.Generator().manual_seed(seed)
    parameters = {"sampler": "smc", "fill": "black", **parameters}
    return bayesian_teaching(classifier, image, targets, samples=samples, generator=generator, **parameters)


def test_a_constant_classifier_gives_the_prior_mean_within_the_error():
    explanation = smc(Constant(), pictures(1), [0], samples=2000)
    z = (explanation.map - explanation.zero) / explanation.error
    assert float(z.abs().max()) < 5
    assert 0.5 < float(z.std()) < 1.5
    assert explanation.certificates[0].effective_samples > 1000


def test_the_centre_of_mass_is_the_patch_a_planted_classifier_looks_at():
    explanation = smc(Patch(), torch.ones(1, 3, SIDE, SIDE), [0], samples=600)
    evidence = (explanation.evidence[0] - 2 * explanation.error[0]).clamp(min=0)
    y, x = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    centre = [float((evidence * at).sum() / evidence.sum()) for at in (y, x)]
    assert centre == pytest.approx([3, 8], abs=1)


@pytest.mark.parametrize("target", [0, 1])
def test_it_agrees_with_weighted_masks_where_these_suffice(target):
    image = torch.ones(1, 3, SIDE, SIDE)
    many = smc(Patch(), image, [target], samples=6000, sampler="importance")
    found = smc(Patch(), image, [target], samples=600, seed=1)
    assert many.certificates[0].effective_samples > 500
    z = (found.map - many.map) / (found.error**2 + many.error**2).sqrt()
    assert 0.5 < float(z.pow(2).mean().sqrt()) < 1.5


def test_auto_samples_the_posterior_of_hard_images_alone():
    """The first is hard (few masks leave it white enough), the second black anyway: every mask counts."""
    images = torch.stack([torch.ones(3, SIDE, SIDE), -torch.ones(3, SIDE, SIDE)])
    auto, importance, sampled = (
        smc(Picky(), images, [1, 0], samples=256, sampler=sampler) for sampler in ("auto", "importance", "smc")
    )
    assert [c.sampling["sampler"] for c in auto.certificates] == ["smc", "importance"]
    assert importance.certificates[0].effective_samples < 20
    assert "set sampler='auto'" in importance.certificates[0].warnings[0]
    assert torch.equal(auto.map[0], sampled.map[0])
    assert torch.equal(auto.map[1], importance.map[1])
    assert auto.certificates[0].parameters["sampler"] == "auto"
    assert auto.certificates[0].sampling["agreement"] < 2
    assert "the standard error is a guess" in auto.certificates[0].warnings[1]
    assert [warning[:21] for warning in auto.certificates[1].warnings] == ["This heatmap is empty"]


def test_a_batch_equals_its_images_one_by_one():
    classifier, images = awkward(), pictures(2)
    together = smc(classifier, images, [0, 1], samples=128)
    for i in range(2):
        alone = smc(classifier, images[i : i + 1], [i], samples=128)
        assert torch.equal(together.map[i], alone.map[0])
        assert torch.equal(together.error[i], alone.error[0])


def test_chunks_and_a_small_memory_leave_the_map_as_it_is():
    classifier, images = awkward(), pictures(1)
    expected = smc(classifier, images, [1], samples=128).map
    torch.testing.assert_close(smc(classifier, images, [1], samples=128, chunk=5).map, expected, rtol=1e-5, atol=1e-6)
    with classifier.exclusive() as module:
        network, sizes = greedy(module)
    found = smc(Classifier(network, unit, classifier.categories, name="greedy"), images, [1], samples=128).map
    assert max(sizes) > 2
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_it_reports_its_way_and_can_be_stopped():
    heard = []
    smc(awkward(), pictures(1), [1], samples=128, progress=lambda *report: heard.append(report[:2]))
    assert heard[-1] == (400, 400)
    assert heard == sorted(heard)
    assert heard[0] == (0, 400)  # before the first temperature: a long one can be stopped as well

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        smc(awkward(), pictures(1), [1], samples=128, progress=stop)


def test_it_says_how_often_it_asked_and_the_cost_is_about_that():
    asked = []

    def evidence(masks):
        asked.append(len(masks))
        return Kriging()(masks)

    found = posterior_mask(Kriging().prior, evidence, 1000, 0)
    assert found.diagnostics["forwards"] == sum(asked)
    said = cost_of("bayesian_teaching", {"sampler": "smc"}, awkward()).forwards
    assert said / 2 < sum(asked) < said * 2
    assert cost_of("bayesian_teaching", {"sampler": "auto"}, awkward()).forwards == said + 1000
    assert cost_of("bayesian_teaching", {}, awkward()).forwards == 1000


@pytest.mark.parametrize("sampler", ["smc", "auto"])
def test_too_few_masks_are_refused(sampler):
    with pytest.raises(ForetellError, match=f"samples=127: sampler='{sampler}' needs at least 128"):
        smc(awkward(), pictures(1), [0], samples=127, sampler=sampler)
