from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from core.attribution.baselines import baselines
from core.attribution.perturbation.extremal_perturbation import (
    Spots,
    area_weight,
    extremal_perturbation,
    objective,
    off_area,
)
from core.attribution.perturbation.learned_masks import FadedImage
from core.errors import ForetellError
from core.network.classifier import Classifier
from tests.core.networks import SIDE, awkward, pictures, unit

CORNER = (slice(0, 6), slice(0, 6))


def looks_at_a_corner() -> Classifier:
    """Linear: 20 x the mean of the top left quarter, and its negative."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 2))
    weight = torch.zeros(3, SIDE, SIDE)
    weight[:, *CORNER] = 20 / 108
    with torch.no_grad():
        network[1].weight.copy_(torch.stack([weight.flatten(), -weight.flatten()]))
        network[1].bias.zero_()
    return Classifier(network, unit, name="corner")


def test_the_mask_of_a_linear_network_covers_its_weights():
    """The best quarter of the picture is the one with the weights; spots are round, so corners stay soft."""
    found = extremal_perturbation(
        looks_at_a_corner(), torch.ones(1, 3, SIDE, SIDE), [0], areas="0.25", reference="black", iterations=200
    )
    inside = torch.zeros(SIDE, SIDE, dtype=torch.bool)
    inside[CORNER] = True
    assert found.map[0][inside].mean() > 0.9
    assert found.map[0][~inside].mean() < 0.15
    (certificate,) = found.certificates
    assert certificate.parameters["reached"][0] == pytest.approx(0.25, abs=0.03)
    shown = -1 + found.map[:, None] * 2
    kept = float(looks_at_a_corner().logits(shown.expand(1, 3, SIDE, SIDE))[0, 0])
    assert certificate.parameters["kept"] == [pytest.approx(kept, abs=1e-4)]
    assert certificate.parameters["whole"] == pytest.approx(20, abs=1e-4)
    assert certificate.parameters["empty"] == pytest.approx(-20, abs=1e-4)
    assert certificate.warnings == ()


def slow_joined(values: torch.Tensor) -> torch.Tensor:
    """Eq. 6 and 7, cell by cell: the mean of k(u - v) values(v), weighted by exp(k values / T), within 5 cells."""
    side = len(values)
    rows = []
    for r in range(side):
        for c in range(side):
            top, below = 0.0, 0.0
            for a in range(max(0, r - 5), min(side, r + 6)):
                for b in range(max(0, c - 5), min(side, c + 6)):
                    spot = math.exp(-(max(0.0, math.hypot(r - a, c - b) - 1) ** 2) / 4) * values[a, b]
                    top, below = top + spot * torch.exp(20 * spot), below + torch.exp(20 * spot)
            rows.append(top / below)
    return torch.stack(rows).view(side, side)


def test_spots_are_joined_by_a_smooth_maximum():
    values = torch.rand(7, 7, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(Spots(7).join_spots(values), slow_joined(values), rtol=1e-4, atol=1e-5)
    one = torch.zeros(7, 7)
    one[3, 3] = 1
    joined = Spots(7).join_spots(one)
    assert joined[3, 2] == pytest.approx(float(joined[3, 3]))  # flat over the cells beside it
    assert joined[3, 0] < joined[3, 1] < joined[3, 2]


def test_off_area_by_hand():
    """Of four, one one: sorted (0, 0.2, 0.6, 0.8) less (0, 0, 0, 1), squared: 0 + 0.04 + 0.36 + 0.04."""
    mask = torch.tensor([[0.8, 0.0], [0.6, 0.2]])
    assert float(off_area(mask, 0.25)) == pytest.approx(0.44 / 4)
    assert float(off_area(torch.tensor([[0.0, 1.0], [0.0, 1.0]]), 0.5)) == 0
    assert float(off_area(torch.tensor([[0.0, 1.0], [0.0, 0.0]]), 0.01)) == 0  # at least one


@pytest.mark.parametrize(("share", "weight", "ones"), [(0.3, 1.0, 5), (0.1, 50.0, 2)])
def test_the_objective_has_the_gradient_of_a_slow_reimplementation(share, weight, ones):
    """Eq. 4 with autograd through the network too, spots and area by loops; where no two cells are equal."""
    classifier, image = awkward(), pictures(1)[0]
    reference = baselines(classifier, image[None], "blur", 0)[0]
    values = torch.rand(4, 4, generator=torch.Generator().manual_seed(2), requires_grad=True)
    game = FadedImage(classifier, image, reference, 1, "logit")
    (found,) = torch.autograd.grad(objective(game, Spots(4), values, share, weight), values)
    mask = slow_joined(values)
    large = F.interpolate(mask[None, None], [SIDE, SIDE], mode="bilinear", align_corners=False)[0, 0]
    with classifier.exclusive() as module:
        logit = module((reference + large * (image - reference))[None].clone())[0, 1]
    ranked = sorted(mask.flatten(), key=lambda value: value.item())
    area = sum((value - float(rank >= 16 - ones)) ** 2 for rank, value in enumerate(ranked)) / 16
    (expected,) = torch.autograd.grad(weight * area - logit, values)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)


def test_the_weight_of_the_area_grows_by_the_same_factor():
    assert [area_weight(step, 3) for step in range(3)] == pytest.approx([1, 3000**0.5, 3000])
    assert area_weight(0, 1) == 1


def test_several_areas_are_the_mean_of_each():
    classifier, image = awkward(), pictures(1)
    alone = [extremal_perturbation(classifier, image, [1], areas=a, grid=5, iterations=10).map for a in ("0.1", "0.4")]
    both = extremal_perturbation(classifier, image, [1], areas="0.1, 0.4", grid=5, iterations=10)
    torch.testing.assert_close(both.map, (alone[0] + alone[1]) / 2, rtol=0, atol=1e-6)
    assert both.certificates[0].parameters["areas"] == [0.1, 0.4]
    assert len(both.certificates[0].parameters["kept"]) == 2


def test_a_mask_that_shows_too_little_or_too_much_is_warned_of():
    classifier, image = looks_at_a_corner(), torch.ones(1, 3, SIDE, SIDE)
    little = extremal_perturbation(classifier, image, [0], areas="0.02", reference="black", iterations=200)
    assert "does not show what the class needs" in little.certificates[0].warnings[0]
    unfinished = extremal_perturbation(classifier, image, [0], areas="0.25", reference="black", iterations=2)
    assert "Try more iterations" in unfinished.certificates[0].warnings[-1]


def test_a_class_that_the_reference_alone_keeps_is_warned_of():
    """A mask over pixels of no effect, without a warning, where the image speaks against the class."""
    image = torch.ones(1, 3, SIDE, SIDE)
    image[:, :, *CORNER] = -1
    found = extremal_perturbation(looks_at_a_corner(), image, [0], areas="0.25", reference="mean", iterations=100)
    (certificate,) = found.certificates
    assert certificate.parameters["whole"] < certificate.parameters["empty"]
    assert "does not show what the class needs. Try another reference" in certificate.warnings[0]


def test_a_image_is_learned_the_same_in_company():
    """Bit for bit: descent would blow up what rounding leaves between a batch and its pictures."""
    classifier, images = awkward(), pictures(3)
    together = extremal_perturbation(classifier, images, [0, 1, 2], iterations=40, grid=6).map
    alone = extremal_perturbation(classifier, images[2:], [2], iterations=40, grid=6).map
    assert torch.equal(together[2], alone[0])


def test_progress_counts_every_step_of_every_mask():
    seen: list[tuple[int, int]] = []
    extremal_perturbation(
        awkward(), pictures(2), [0, 1], areas="0.1,0.2", grid=4, iterations=3, progress=lambda *s: seen.append(s[:2])
    )
    assert seen == [(done, 12) for done in range(1, 13)]


@pytest.mark.parametrize("areas", ["", "a", "0.1,", "0", "1", "0.1,1.5"])
def test_bad_areas_are_refused(areas):
    with pytest.raises(ForetellError, match="shares of the image between 0 and 1"):
        extremal_perturbation(awkward(), pictures(1), [0], areas=areas)


@pytest.mark.parametrize(
    ("parameters", "says"), [({"iterations": 0}, "at least 1 iteration"), ({"grid": 13}, "2 to 12 cells")]
)
def test_bad_parameters_are_refused(parameters, says):
    with pytest.raises(ForetellError, match=says):
        extremal_perturbation(awkward(), pictures(1), [0], **parameters)
