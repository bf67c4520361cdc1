"""Cost of a heatmap before it is computed: passes through the network, and seconds on this machine.

A method's record has the rule of its passes (`core.attribution.records`). A count is of one image and leaves out the
few passes that every heatmap takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor

from core.attribution.common import output_gradient
from core.network.classifier import Classifier
from core.network.device import chunk_size

TIMED = 8
"""Inputs of the timed passes: enough to measure what a batch saves."""


@dataclass(frozen=True)
class Cost:
    """Passes of one image: ``forwards`` are predictions, ``gradients`` go forth and back."""

    forwards: int = 0
    gradients: int = 0


@dataclass(frozen=True)
class Pace:
    """Seconds of one pass of one image."""

    forward_s: float
    gradient_s: float

    def seconds(self, cost: Cost) -> float:
        """Estimate the duration."""
        return cost.forwards * self.forward_s + cost.gradients * self.gradient_s


CostRule = Callable[[Mapping[str, Any], Classifier], Cost]
"""The passes of one heatmap by a method with these parameters, all of them given."""


def forwards(*names: str) -> CostRule:
    """Return the rule of a method that predicts as often as the product of the parameters ``names``; once without."""
    return lambda settings, _: Cost(forwards=prod(int(settings[name]) for name in names))


def gradients(*names: str) -> CostRule:
    """Return the rule of a method that goes forth and back as often as that product; once without."""
    return lambda settings, _: Cost(gradients=prod(int(settings[name]) for name in names))


def sampled_references(settings: Mapping[str, Any], _: Classifier) -> Cost:
    """Predict each of ``samples`` references, and go forth and back from it."""
    return Cost(forwards=settings["samples"], gradients=settings["samples"])


def pace(classifier: Classifier) -> Pace:
    """Time this network on this machine: the shorter of two timings each, after a warm-up pass."""
    fill = classifier.fill("mean")
    inputs = fill.expand(min(TIMED, chunk_size(fill, classifier.device)), -1, -1, -1)
    targets = torch.zeros(len(inputs), dtype=torch.long)
    forward = _seconds(lambda: classifier.logits(inputs))
    gradient = _seconds(lambda: output_gradient(classifier, inputs, targets))
    return Pace(forward / len(inputs), gradient / len(inputs))


def _seconds(work: Callable[[], Tensor]) -> float:
    work()
    seconds_of = []
    for _ in range(2):
        start = time.perf_counter()
        work()
        seconds_of.append(time.perf_counter() - start)
    return min(seconds_of)
