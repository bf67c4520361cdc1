"""Erasure between two classes: the budget of the paper, a closed form, and the built-in network."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from core.attribution.gradients.plain import input_x_gradient, integrated_gradients
from core.errors import ForetellError
from core.faithfulness.erasure import log_odds_erasure
from core.network.classifier import Classifier
from tests.core.networks import SIDE, awkward, pictures
from tests.core.scenes import answered, scene_net
from tests.core.test_paths import linear


def generator(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_budget_is_the_papers_157_pixels_of_a_digit_and_only_those_that_favour_the_class():
    """Shrikumar et al. 2017, section 4.1: 20% of 28 x 28 is 157; erased is what favours the class, the most first."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    classifier = Classifier(network, lambda image: torch.zeros(1, 28, 28), name="digits")
    maps = torch.randn(3, 28, 28, generator=generator())
    maps[1] = -maps[1].abs()  # nothing favours the class
    maps[2] = torch.where(torch.arange(784).view(28, 28) < 10, 1.0, 0.0)  # ten pixels do, the others say nothing
    found = log_odds_erasure(
        classifier, torch.randn(3, 1, 28, 28, generator=generator()), [0, 1, 2], [1, 2, 3], maps, torch.zeros(3, 28, 28)
    )
    assert found.erased.tolist() == [157, 0, 10]
    assert float(found.change[1]) == 0


def test_a_linear_network_loses_exactly_its_largest_contributions():
    """Closed form: the change is the sum of the largest positive contributions to the difference of the two logits."""
    classifier, weight = linear()
    images = pictures(2)
    one, other = (input_x_gradient(classifier, images, classes, baseline="mean").map for classes in ([0, 1], [1, 0]))
    found = log_odds_erasure(classifier, images, [0, 1], [1, 0], one, other, share=0.1)
    gave = ((weight[[0, 1]] - weight[[1, 0]]) * (images - classifier.fill("mean"))).sum(1).double()
    expected = gave.flatten(1).topk(14).values.sum(1)
    torch.testing.assert_close(found.change, expected, rtol=1e-4, atol=0)
    logits = classifier.logits(images).double()
    torch.testing.assert_close(found.before, logits[[0, 1], [0, 1]] - logits[[0, 1], [1, 0]], rtol=1e-5, atol=1e-6)
    swapped = log_odds_erasure(classifier, images, [0, 1], [1, 0], other, one, share=0.1)
    assert float(swapped.change.max()) < 0


def test_erased_pixels_are_the_substrates():
    """All erased: what is left is the substrate, the blur of the picture itself included."""
    from core.attribution.baselines import baselines

    classifier, images = awkward(), pictures(2)
    above = torch.ones(2, SIDE, SIDE)
    for substrate in ("mean", "black", "blur"):
        found = log_odds_erasure(classifier, images, [0, 1], [2, 2], above, -above, share=1.0, substrate=substrate)
        logits = classifier.logits(baselines(classifier, images, substrate, 0)).double()
        torch.testing.assert_close(found.after, logits[[0, 1], [0, 1]] - logits[:, 2], rtol=1e-4, atol=1e-5)
        assert found.erased.tolist() == [SIDE**2, SIDE**2]


def test_on_the_built_in_network_maps_know_what_tells_two_classes_apart():
    classifier = scene_net()
    inputs, answers = answered(classifier, 8)
    seconds = classifier.logits(inputs).topk(2).indices[:, 1].tolist()
    one, other = (
        integrated_gradients(classifier, inputs, classes, baseline="mean", steps=16).map
        for classes in (answers, seconds)
    )
    told = log_odds_erasure(classifier, inputs, answers, seconds, one, other)
    mixed = torch.randperm(one[0].numel(), generator=generator())
    random = log_odds_erasure(
        classifier, inputs, answers, seconds, *(m.flatten(1)[:, mixed].view_as(m) for m in (one, other))
    )
    assert random.erased.tolist() == told.erased.tolist()
    assert float(told.change.mean()) > float(random.change.mean()) + 2


@pytest.mark.parametrize(
    ("others", "share", "says"),
    [([0], 0.2, "two different classes"), ([3], 0.2, "not a class"), ([1], 0.0, "above 0"), ([1], 1.5, "up to 1")],
)
def test_what_cannot_be_compared_is_refused(others, share, says):
    none = torch.zeros(1, SIDE, SIDE)
    with pytest.raises(ForetellError, match=says):
        log_odds_erasure(awkward(), pictures(1), [0], others, none, none, share=share)


def test_maps_that_do_not_fit_are_refused():
    fits, not_fits = torch.zeros(1, SIDE, SIDE), torch.zeros(1, SIDE, SIDE - 1)
    for maps in ((fits, not_fits), (not_fits, fits)):
        with pytest.raises(ForetellError, match="one heatmap"):
            log_odds_erasure(awkward(), pictures(1), [0], [1], *maps)
