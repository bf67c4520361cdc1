from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from core.attribution.baselines import baselines
from core.attribution.perturbation.learned_masks import FadedImage, descend, full_size
from core.attribution.perturbation.meaningful_perturbation import (
    first_disc,
    meaningful_perturbation,
    regular,
    shift_mask,
)
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import draw_seed, stream
from tests.core.networks import SIDE, awkward, pictures, unit


def linear(seed: int = 1) -> Classifier:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 2))
    return Classifier(network, unit, name="linear")


def gave(classifier: Classifier, image: torch.Tensor, target: int) -> torch.Tensor:
    """What each pixel of a linear network adds to the logit over the mean colour, (H, W)."""
    with classifier.exclusive() as module:
        weight = module[1].weight[target].detach().view(3, SIDE, SIDE)
    return (weight * (image - classifier.fill("mean"))).sum(0)


class Corner(nn.Module):
    """Sees only how far the top left 6 x 6 px are above black, and is sure when they are bright."""

    def forward(self, x):
        bright = 8 * (x[:, :, :6, :6].mean((1, 2, 3)) + 0.2)
        return torch.stack([bright, -bright], 1)


def test_a_linear_network_loses_exactly_the_pixels_that_pay_for_their_deletion():
    """Closed form, one cell a pixel, no smoothness: a pixel is deleted where it gave more than sparsity / pixels."""
    classifier, image = linear(), pictures(1)
    price = 0.02
    found = meaningful_perturbation(
        classifier,
        image,
        [1],
        grid=SIDE,
        iterations=100,
        sparsity=price * SIDE**2,
        smoothness=0.0,
        jitter=0.0,
        reference="mean",
        output="logit",
    )
    worth = gave(classifier, image[0], 1)
    clear = (worth - price).abs() > 1e-4
    torch.testing.assert_close(found.map[0][clear], (worth > price).float()[clear], rtol=0, atol=1e-6)
    assert 0.1 < found.map.mean() < 0.9


@pytest.mark.parametrize("output", ["logit", "probability"])
def test_the_chain_rule_outside_equals_autograd_through_the_network(output):
    classifier, image = awkward(), pictures(1)[0]
    game = FadedImage(classifier, image, classifier.fill("black"), 1, output)
    mask = torch.rand(SIDE, SIDE, generator=torch.Generator().manual_seed(5), requires_grad=True)
    (found,) = torch.autograd.grad(game.pull(mask), mask)
    with classifier.exclusive() as module:
        logits = module(((game.reference + mask * (image - game.reference))[None]).clone())[0]
        said = logits[1] if output == "logit" else logits.softmax(0)[1]
        (expected,) = torch.autograd.grad(said, mask)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
    assert expected.abs().max() > 1e-4


def test_it_equals_a_slow_reimplementation():
    """Eq. 5 with autograd through the whole, Adam written out (Kingma & Ba 2015, algorithm 1), the jitter replayed."""
    classifier, image, grid = awkward(), pictures(1), 5
    found = meaningful_perturbation(
        classifier, image, [1], generator=torch.Generator().manual_seed(3), iterations=8, grid=grid, jitter=0.1
    )
    seed = draw_seed(torch.Generator().manual_seed(3))
    reference = baselines(classifier, image, "blur", 0)[0]
    mask = first_disc(FadedImage(classifier, image[0], reference, 1, "probability"), grid)
    m, v = torch.zeros(grid, grid), torch.zeros(grid, grid)
    for step in range(8):
        mask.requires_grad_()
        down, right = torch.randint(-1, 2, (2,), generator=stream(seed, step)).tolist()
        large = F.interpolate(mask[None, None], [SIDE, SIDE], mode="bilinear", align_corners=False)[0, 0]
        rows, columns = ((torch.arange(SIDE) - by).clamp(0, SIDE - 1) for by in (down, right))
        large = large[rows][:, columns]
        with classifier.exclusive() as module:
            p = module((reference + large * (image[0] - reference))[None].clone()).softmax(1)[0, 1]
        total = 0.0
        for r in range(grid):
            for c in range(grid):
                total += abs(mask[r, c] - mask[r - 1, c]) ** 3 if r else 0.0
                total += abs(mask[r, c] - mask[r, c - 1]) ** 3 if c else 0.0
        (g,) = torch.autograd.grad(p + 0.08 * (1 - mask).sum() / grid**2 + 0.28 * total / grid, mask)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        one, two = m / (1 - 0.9 ** (step + 1)), v / (1 - 0.999 ** (step + 1))
        mask = (mask.detach() - 0.1 * one / (two.sqrt() + 1e-8)).clamp(0, 1)
    torch.testing.assert_close(found.map[0], 1 - full_size(mask, (SIDE, SIDE)), rtol=1e-3, atol=1e-4)


def test_it_deletes_what_the_classifier_looks_at_and_says_so():
    classifier, image = Classifier(Corner(), unit, name="corner"), torch.ones(1, 3, SIDE, SIDE)
    found = meaningful_perturbation(classifier, image, [0], grid=6, reference="black", iterations=150)
    assert found.map[0, :5, :5].mean() > 0.5
    assert found.map[0, 8:, 8:].max() < 0.05
    (certificate,) = found.certificates
    known = certificate.parameters
    assert certificate.warnings == ()
    shown = -1 + (1 - found.map[:, None]) * (image + 1)
    assert known["deleted"] == pytest.approx(float(classifier.probabilities(shown)[0, 0]), abs=1e-5)
    assert known["whole"] > 0.99 > 0.5 > known["deleted"]
    assert known["share"] == pytest.approx(float(found.map.mean()), abs=1e-5)
    assert found.zero == 0


def test_a_deletion_that_does_not_take_the_class_away_is_warned_of():
    blind = linear()
    with blind.exclusive() as module:
        nn.init.zeros_(module[1].weight)
    blind = Classifier(module, unit, name="blind")
    (certificate,) = meaningful_perturbation(blind, pictures(1), [0], iterations=3, grid=4).certificates
    assert "no part that the class needs" in certificate.warnings[0]


def test_the_first_mask_is_the_smallest_disc_that_deletes_the_class():
    """Of 12 x 12 cells, looked at are the middle four: the disc of radius 0.1 holds their centres, 0.06 from the
    middle, that of 0.05 does not."""

    class Middle(nn.Module):
        def forward(self, x):
            seen = x[:, :, 5:7, 5:7].mean((1, 2, 3))
            return torch.stack([10 * seen, -10 * seen], 1)

    classifier = Classifier(Middle(), unit, name="middle")
    game = FadedImage(classifier, torch.ones(3, SIDE, SIDE), classifier.fill("black"), 0, "probability")
    disc = first_disc(game, SIDE)
    assert (1 - disc).nonzero().tolist() == [[5, 5], [5, 6], [6, 5], [6, 6]]


def test_regularity_by_hand():
    """Deleted share 2/4; of the four differences 1, 0.5, 0 and 0.5 the third powers sum to 1.25."""
    mask = torch.tensor([[0.0, 1.0], [0.5, 0.5]])
    assert float(regular(mask, 0.1, 0.0)) == pytest.approx(0.05)
    assert float(regular(mask, 0.0, 0.2)) == pytest.approx(0.2 * (1 + 0.125 + 0.125) / 2)


def test_a_shifted_mask_keeps_its_edge():
    mask = torch.arange(9.0).view(3, 3)
    assert torch.equal(shift_mask(mask, 1, 0), mask[[0, 0, 1]])
    assert torch.equal(shift_mask(mask, 0, -1), mask[:, [1, 2, 2]])
    assert torch.equal(shift_mask(mask, 0, 0), mask)


def test_descent_stays_within_bounds_and_reports_each_step():
    steps: list[int] = []
    found = descend(
        torch.tensor([0.5, 0.5]), lambda v, _: (v - torch.tensor([2.0, 0.3])).square().sum(), 200, 0.1, steps.append
    )
    torch.testing.assert_close(found, torch.tensor([1.0, 0.3]), rtol=0, atol=1e-2)
    assert steps == list(range(1, 201))


def test_a_image_is_learned_the_same_in_company():
    """Bit for bit: descent would blow up what rounding leaves between a batch and its pictures."""
    classifier, images = awkward(), pictures(3)
    together = meaningful_perturbation(classifier, images, [0, 1, 2], iterations=40, grid=6).map
    alone = meaningful_perturbation(classifier, images[2:], [2], iterations=40, grid=6).map
    assert torch.equal(together[2], alone[0])


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"iterations": 0}, "at least 1 iteration"),
        ({"sparsity": -1.0}, "weights of 0 or more"),
        ({"jitter": 0.5}, "jitter from 0 to below"),
        ({"grid": 13}, "2 to 12 cells"),
        ({"grid": 1}, "2 to 12 cells"),
    ],
)
def test_bad_parameters_are_refused(parameters, says):
    with pytest.raises(ForetellError, match=says):
        meaningful_perturbation(awkward(), pictures(1), [0], **parameters)
