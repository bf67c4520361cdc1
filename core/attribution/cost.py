"""Cost of a heatmap before it is computed: passes through the network, and seconds on this machine.

Read from the parameters a method declares, which are named alike in all methods; what these names do not tell is
in `SPECIAL`. A count is of one image and leaves out the few passes that every heatmap takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor

from core.attribution import METHODS
from core.attribution.common import output_gradient
from core.attribution.meaningful_perturbation import DISCS
from core.attribution.occlusion import Windows
from core.attribution.opening import is_external
from core.attribution.places import read_maps, select_layer
from core.attribution.taylor import ELSEWHERE, HALVINGS
from core.classifier import Classifier
from core.device import chunk_size
from core.errors import ForetellError
from core.parameters import list_parameters

REPEATS = ("samples", "steps", "iterations")
"""Parameters that set how often a method queries the network."""

TEMPERATURES = 3
"""Typical number for a posterior of masks; the number of an image is known only while it runs."""

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


def cost(method: str, parameters: Mapping[str, Any], classifier: Classifier) -> Cost:
    """Return the passes of one map of ``classifier`` by the method ``method`` with its ``parameters``.

    Raises
    ------
    ForetellError
        An unknown method or one that Foretell did not make, or parameters that no heatmap can have.
    """
    if is_external(method) or method in METHODS.plugins:
        raise ForetellError(f"The cost of {method} is not known before it runs.")
    settings = {p.name: p.default for p in list_parameters(METHODS[method])} | dict(parameters)
    if method in SPECIAL:
        return SPECIAL[method](settings, classifier)
    count = prod(int(settings[name]) for name in REPEATS if name in settings)
    if "window" in settings:
        count *= len(Windows.of(*classifier.input_shape[1:], settings["window"], settings["stride"]).places)
    # A method that fills covered parts of the image needs only predictions.
    return Cost(forwards=count) if "fill" in settings else Cost(gradients=count)


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


def _designs(settings: Mapping[str, Any], _: Classifier) -> Cost:
    return Cost(forwards=settings["designs"] * (settings["grid"] ** 2 + 2))


def _coalitions(settings: Mapping[str, Any], _: Classifier) -> Cost:
    return Cost(forwards=2 ** (settings["grid"] ** 2))


def _some_coalitions(settings: Mapping[str, Any], _: Classifier) -> Cost:
    return Cost(forwards=min(settings["samples"], 2 ** (settings["grid"] ** 2)))


def _orders(settings: Mapping[str, Any], _: Classifier) -> Cost:
    return Cost(forwards=2 * settings["pairs"] * (settings["grid"] ** 2 - 1))


def _feature_maps(settings: Mapping[str, Any], classifier: Classifier) -> Cost:
    return Cost(forwards=_maps(settings, classifier).shape[1], gradients=1)


def _places(settings: Mapping[str, Any], classifier: Classifier) -> Cost:
    return Cost(forwards=_maps(settings, classifier).shape[2:].numel())


def _maps(settings: Mapping[str, Any], classifier: Classifier) -> Tensor:
    layer = select_layer(classifier, settings["layer"])
    shown = classifier.fill("mean")[None]
    return read_maps(classifier, shown, torch.zeros(1, dtype=torch.long), layer).activation


def _random_masks(settings: Mapping[str, Any], _: Classifier) -> Cost:
    weighted = settings["samples"] * (settings["sampler"] != "smc")
    sampled = settings["samples"] * (1 + TEMPERATURES) * (settings["sampler"] != "importance")
    return Cost(forwards=weighted + sampled)


def _references(settings: Mapping[str, Any], _: Classifier) -> Cost:
    return Cost(forwards=settings["samples"], gradients=settings["samples"])


def _root_search(settings: Mapping[str, Any], _: Classifier) -> Cost:
    roots = 1 + len(ELSEWHERE) if settings.get("root") == "least_remainder" else 1
    return Cost(forwards=HALVINGS * roots, gradients=roots)


def _each_area(settings: Mapping[str, Any], _: Classifier) -> Cost:
    return Cost(gradients=settings["iterations"] * len(settings["areas"].split(",")))


def _discs(settings: Mapping[str, Any], _: Classifier) -> Cost:
    return Cost(forwards=DISCS, gradients=settings["iterations"])


SPECIAL: Mapping[str, Callable[[Mapping[str, Any], Classifier], Cost]] = {
    "bayesian_teaching": _random_masks,
    "shapley_exact": _coalitions,
    "kernel_shap": _some_coalitions,
    "shapley_sampling": _orders,
    "sobol": _designs,
    "score_cam": _feature_maps,
    "erasure": _places,
    "expected_gradients": _references,
    "deep_shap": _references,
    "taylor_decomposition": _root_search,
    "extremal_perturbation": _each_area,
    "meaningful_perturbation": _discs,
}
