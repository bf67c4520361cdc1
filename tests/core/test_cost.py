"""What a map is said to cost, against the passes that are really made."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch import nn

from core.attribution import METHODS
from core.attribution.cost import Cost, Pace, pace
from core.attribution.records import cost_of
from core.network.classifier import Classifier
from core.parameters import list_parameters
from tests.core.networks import SIDE, awkward, pictures, unit
from tests.core.test_contracts import CHEAP, subject

ALWAYS = 12
"""Passes every map takes beside its own count: f(x), f(fill), the certificate, the last layer's check."""


class Passes(Counter):
    """How many inputs went through, with and without a gradient; copies of a network share it."""

    def __deepcopy__(self, memo):
        return self


class Counting(nn.Module):
    """A network that counts the inputs it and its copies are given."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network, self.passes = network, Passes()

    def forward(self, x):
        self.passes["gradients" if torch.is_grad_enabled() else "forwards"] += len(x)
        return self.network(x)


@pytest.mark.parametrize("name", list(METHODS))
def test_the_cost_is_what_is_really_asked_of_the_network(name):
    """Catches a record whose rule is not what the method does."""
    plain = subject(name)
    with plain.exclusive() as module:
        counting = Counting(module)
    classifier = Classifier(counting, unit, plain.categories, name="counting")
    parameters = dict(CHEAP.get(name, {}))
    if any(p.name == "layer" for p in list_parameters(METHODS[name])):
        parameters["layer"] = "network.drop"
    said = cost_of(name, parameters, classifier)
    METHODS[name](classifier, pictures(1), [0], **parameters)  # also makes the copies that predict
    counting.passes.clear()
    METHODS[name](classifier, pictures(1), [0], generator=torch.Generator().manual_seed(0), **parameters)
    found = counting.passes
    # A pass may run without a gradient up to the layer in question: then it counts as a prediction here.
    assert found.total() <= 1.3 * (said.forwards + said.gradients) + ALWAYS
    assert found.total() >= 0.7 * (said.forwards + said.gradients)
    if abs(found["forwards"] - found["gradients"]) > 2 * ALWAYS:
        assert (found["forwards"] > found["gradients"]) == (said.forwards > said.gradients)


def test_counts_by_hand():
    classifier = awkward()
    assert cost_of("gradient", {}, classifier) == Cost(gradients=1)
    assert cost_of("integrated_gradients", {"steps": 30}, classifier) == Cost(gradients=30)
    assert cost_of("rise", {}, classifier) == Cost(forwards=1000)
    assert cost_of("kernel_shap", {"grid": 3, "samples": 2048}, classifier) == Cost(forwards=512)  # all coalitions once
    assert cost_of("shapley_exact", {"grid": 4}, classifier) == Cost(forwards=65_536)
    # 12 px, windows of 4 px every 2 px: 5 x 5.
    assert SIDE == 12
    assert cost_of("taylor_decomposition", {"root": "least_remainder"}, classifier) == Cost(forwards=120, gradients=6)
    assert cost_of("occlusion", {"window": 4, "stride": 2}, classifier) == Cost(forwards=25)
    assert cost_of("score_cam", {"layer": "drop"}, classifier) == Cost(forwards=8, gradients=1)


def test_the_pace_is_of_one_image_and_adds_up():
    measured = pace(awkward())
    assert 0 < measured.forward_s < 1
    assert 0 < measured.gradient_s < 1
    assert Pace(0.01, 0.03).seconds(Cost(100, 10)) == pytest.approx(1.3)
