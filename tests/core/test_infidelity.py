"""Infidelity against closed forms, full enumeration, captum, and on the built-in network."""

from __future__ import annotations

import pytest
import torch

from core.attribution.gradients.plain import input_x_gradient, integrated_gradients
from core.errors import ForetellError
from core.faithfulness.infidelity import _present, infidelity
from core.network.masked import scores
from tests.core.networks import SIDE, awkward, pictures
from tests.core.scenes import answered, scene_net
from tests.core.test_paths import linear

PERTURBATIONS = pytest.mark.parametrize("perturbation", ["square", "noise"])


def generator(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def contributions(classifier, images, targets) -> torch.Tensor:
    """What each pixel's presence adds to a linear network."""
    return input_x_gradient(classifier, images, targets, baseline="mean").map


@PERTURBATIONS
def test_the_contributions_of_a_linear_network_miss_nothing(perturbation):
    """captum tests/metrics: 0 for the gradient of a linear region. Their opposite misses twice what is lost."""
    classifier, _ = linear()
    images = pictures(2)
    right = contributions(classifier, images, [1, 0])
    found = infidelity(classifier, images, [1, 0], right, perturbation=perturbation)
    assert float((found.value / found.empty).max()) < 1e-9
    against = infidelity(classifier, images, [1, 0], -right, perturbation=perturbation)
    torch.testing.assert_close(against.value, 4 * against.empty, rtol=1e-5, atol=0)
    scaled = infidelity(classifier, images, [1, 0], -3 * right, perturbation=perturbation, scaled=True)
    torch.testing.assert_close(scaled.scale, torch.full((2,), -1 / 3, dtype=torch.float64), rtol=1e-5, atol=0)
    assert float((scaled.value / scaled.empty).max()) < 1e-9


def test_a_wrong_map_under_noise_has_the_closed_form():
    """Linear network, map off by d: E[(I d)^2] = (sum d)^2 + sd^2 sum d^2 for I = 1 - sd eps; the error is honest."""
    classifier, _ = linear()
    images = pictures(1)
    wrong = 0.02 * torch.randn(1, SIDE, SIDE, generator=generator()).double()
    maps = (contributions(classifier, images, [1]) + wrong).float()
    expected = float(wrong.sum() ** 2 + 0.25 * wrong.square().sum())
    misses = []
    for seed in range(40):
        found = infidelity(
            classifier, images, [1], maps, generator=generator(seed), samples=200, perturbation="noise", noise=0.5
        )
        misses.append(float((found.value - expected) / found.error))
    assert abs(sum(misses) / 40) < 0.7
    assert 0.6 < torch.tensor(misses).std() < 1.6


def test_squares_are_everywhere_they_fit_and_nowhere_else():
    """All places of a 6 px square one by one: the Monte Carlo mean meets the mean over them."""
    classifier, images = awkward(), pictures(1)
    maps = contributions(classifier, images, [2])
    fill, whole = classifier.fill("mean"), scores(classifier, images, torch.tensor([2]), "logit")
    squared = []
    for top in range(SIDE - 5):
        for left in range(SIDE - 5):
            gone = torch.zeros(SIDE, SIDE, dtype=torch.bool)
            gone[top : top + 6, left : left + 6] = True
            covered = torch.where(gone, fill, images[0])[None]
            lost = whole - scores(classifier, covered, torch.tensor([2]), "logit")
            squared.append(float((maps[0][gone].double().sum() - lost) ** 2))
    found = infidelity(classifier, images, [2], maps, generator=generator(), samples=4000, side=0.5)
    assert abs(float(found.value) - sum(squared) / len(squared)) < 4 * float(found.error)
    assert float(found.error) < 0.1 * float(found.value)


def test_a_square_of_the_whole_image_is_the_completeness_of_the_map():
    """One perturbation is left: all goes, and what a map misses is its completeness residual."""
    classifier, images = awkward(), pictures(2)
    explained = integrated_gradients(classifier, images, [0, 1], baseline="mean", steps=8)
    found = infidelity(classifier, images, [0, 1], explained.map, side=1.0, samples=3)
    residuals = torch.tensor([c.completeness for c in explained.certificates], dtype=torch.float64)
    torch.testing.assert_close((found.value / found.empty).sqrt(), residuals.abs(), rtol=1e-3, atol=1e-6)
    torch.testing.assert_close(found.error, torch.zeros(2, dtype=torch.float64), rtol=0, atol=1e-9)


@PERTURBATIONS
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("substrate", ["mean", "black"])
def test_it_agrees_with_captum_on_the_same_perturbations(perturbation, scaled, substrate):
    from captum.metrics import infidelity as theirs

    classifier, images = awkward(), pictures(1)
    maps = torch.randn(1, SIDE, SIDE, generator=generator())
    ours = infidelity(
        classifier, images, [1], maps, samples=100, perturbation=perturbation, substrate=substrate, scaled=scaled
    )
    present = torch.cat(list(_present(perturbation, maps[0], 100, ours.seed, 0.25, 0.2)))[:, None].expand(-1, 3, -1, -1)
    fill = classifier.fill(substrate)

    def perturbed(inputs):
        return 1 - present, fill + present * (inputs - fill)

    with classifier.exclusive() as module, torch.no_grad():
        # A pixel's share stands in each of its channels, so that captum's sum over the channels is the pixel's.
        value = theirs(
            lambda x: module(x.clone()),
            perturbed,
            images,
            maps[:, None].expand(-1, 3, -1, -1) / 3,
            target=1,
            n_perturb_samples=100,
            max_examples_per_batch=100,
            normalize=scaled,
        )
    torch.testing.assert_close(ours.value.float(), value.float(), rtol=1e-3, atol=1e-6)


def test_a_map_of_zeros_misses_all_and_no_factor_helps_it():
    classifier, images = awkward(), pictures(1)
    for scaled in (False, True):
        found = infidelity(classifier, images, [0], torch.zeros(1, SIDE, SIDE), scaled=scaled)
        assert found.value.tolist() == found.empty.tolist()


def test_a_batch_is_its_images_and_more_samples_continue_the_same_draws():
    classifier, images = awkward(), pictures(3)
    maps = torch.randn(3, SIDE, SIDE, generator=generator())
    whole = infidelity(classifier, images, [0, 1, 2], maps, generator=generator(), samples=70)
    for k in range(3):
        alone = infidelity(classifier, images[k : k + 1], [k], maps[k : k + 1], generator=generator(), samples=70)
        torch.testing.assert_close(whole.value[k], alone.value[0], rtol=1e-5, atol=1e-8)
    for perturbation in ("square", "noise"):
        few, many = (torch.cat(list(_present(perturbation, maps[0], n, 5, 0.25, 0.2))) for n in (70, 200))
        assert torch.equal(few, many[:70])


def test_on_the_built_in_network_integrated_gradients_foretell_and_noise_does_not():
    classifier = scene_net()
    inputs, answers = answered(classifier, 6)
    maps = integrated_gradients(classifier, inputs, answers, baseline="mean", steps=16).map
    told = infidelity(classifier, inputs, answers, maps, generator=generator(), samples=64)
    shuffled = maps.flatten(1)[:, torch.randperm(maps[0].numel(), generator=generator())].view_as(maps)
    noise = infidelity(classifier, inputs, answers, shuffled, generator=generator(), samples=64)
    assert float(told.value.sum()) < 0.9 * float(noise.value.sum())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"samples": 1}, "at least 2 perturbations"),
        ({"side": 0.0}, "above 0 and up to 1"),
        ({"side": 1.1}, "above 0 and up to 1"),
        ({"noise": -0.1}, "of 0 or more"),
    ],
)
def test_what_is_out_of_range_is_refused(given, says):
    with pytest.raises(ForetellError, match=says):
        infidelity(awkward(), pictures(1), [0], torch.zeros(1, SIDE, SIDE), **given)
