"""The background task of the view of layers: a question of the command `layers`, for some images of a set."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd
from PIL import Image

from core.attribution.cost import Cost
from core.attribution.places.place import select_layer
from core.attribution.records import cost_of
from core.network.classifier import Classifier
from core.parameters import list_parameters, parse_parameters
from core.training.record import TrainingSettings, list_epochs
from core.types import Progress
from core.units.unit import Unit, find_layer_shape
from dashboard.explore.heatmap_jobs import estimate_seconds
from dashboard.shared.keys import digest
from dashboard.shared.tasks import Task
from data.types import ImageSet
from study.inquiry.interventions import draw_rows
from study.inquiry.layers import QUESTIONS, LayerInspection, LayerQuery, blocks, draw_result
from study.workspace.workspace import home

STEPS = {"fgsm": 1, "pgd": 40}
"""Gradients that an attack takes per image at most, by its defaults."""
MOST_STEPS = 50
"""Those of an attack that is not named there."""
TRAINED = 32
"""Gradients of one image that a step of an explainer costs, about."""
REFINED = 45
"""Gradients of one image that the refinement of a layer costs, about: mostly the probes, which grow with the images."""
PROBE_S, PERCEPTRON = 0.007, 2.5
"""Seconds of a linear probe of a layer per image, about, and how many times longer a perceptron takes."""
LEARNING_S: Mapping[str, tuple[float, int]] = {"decomposition": (0.2, 48), "recognition": (0.22, 32)}
"""Of the questions that do not run the network: seconds per image of a side, about, and that side, px."""
EPOCHS = 8
"""Epochs of these times."""
PROBING = frozenset({"probes", "information"})
"""Questions that train probes of each layer."""
QUERIES = 100
"""Images that a network is asked about, to compare it with its relatives; as many are crafted for an output."""
WALK = 150
"""Gradients, about, of the three walks from one image to its decision boundaries."""


@dataclass(frozen=True)
class LayerResult:
    """A question's table, and how it was computed."""

    table: pd.DataFrame
    facts: dict[str, Any]
    drawings: Mapping[str, Image.Image] = field(default_factory=dict)


@dataclass(frozen=True)
class LayerRequest:
    """A question of the command `layers`, about at most ``count`` images of a set, drawn with its seed."""

    query: LayerQuery
    classifier: Classifier
    compared: Classifier
    images: ImageSet = field(compare=False)
    count: int

    @cached_property
    def key(self) -> str:
        """Return the SHA-256 of everything the result depends on."""
        networks = (self.classifier.fingerprint, self.compared.fingerprint)
        return digest(
            "layers", *networks, self.images.digest, str(self.count), json.dumps(asdict(self.query), sort_keys=True)
        )

    def compute(self, progress: Progress) -> LayerResult:
        """Compute the table; finished blocks stay in the cache for a run that was stopped."""
        question = QUESTIONS[self.query.question]
        given = parse_parameters(question, self.query.parameters)
        images = self.images.only(draw_rows(len(self.images), self.query.seed, self.count))
        parts = home() / "cache" / "inspections"
        inspected = LayerInspection(self.classifier, images, self.query, self.compared, parts)
        table = question(inspected, progress, **given)
        return LayerResult(table, inspected.facts, draw_result(inspected))

    @property
    def task(self) -> Task:
        """Return the task that computes it."""
        return Task(self.key, self.compute, self.estimate)

    def estimate(self) -> float | None:
        """Estimate the seconds of the passes at most, and of probes; what else is computed from them is left out."""
        defaults = {parameter.name: parameter.default for parameter in list_parameters(QUESTIONS[self.query.question])}
        given = defaults | dict(self.query.parameters)
        if self.query.question in LEARNING_S:
            return _estimate_learning(self, given)
        passes = PASSES.get(self.query.question, _each_layer)(self, given)
        seconds = None if passes is None else estimate_seconds(self.classifier, passes)
        return None if seconds is None else seconds + _estimate_probes(self, given)

    @property
    def image_count(self) -> int:
        """Return the number of images used."""
        return min(self.count, len(self.images))


def _estimate_probes(request: LayerRequest, given: Mapping[str, Any]) -> float:
    """Estimate the seconds of training probes, which do not depend on the speed of the network."""
    if request.query.question not in PROBING:
        return 0.0
    layers = len(request.query.layers) or len(blocks(request.classifier))
    return PROBE_S * layers * request.image_count * (PERCEPTRON if int(given.get("hidden", 0)) else 1)


def _estimate_learning(request: LayerRequest, given: Mapping[str, Any]) -> float:
    """Estimate the seconds of learning filters from images, which does not run the network."""
    seconds, side = LEARNING_S[request.query.question]
    images = min(request.image_count, int(given["images"]))
    return seconds * images * (int(given["side"]) / side) ** 2 * int(given["epochs"]) / EPOCHS


def _each_layer(request: LayerRequest, _: Mapping[str, Any]) -> Cost:
    layers = len(request.query.layers) or len(request.classifier.layers)
    return Cost(2 * layers * request.image_count)


def _each_unit(request: LayerRequest, _: Mapping[str, Any]) -> Cost:
    layers = request.query.layers or [select_layer(request.classifier, "")]
    return Cost(request.image_count * sum(find_layer_shape(request.classifier, Unit(0, layer))[0] for layer in layers))


def _each_training_step(request: LayerRequest, given: Mapping[str, Any]) -> Cost:
    return Cost(2 * request.image_count, gradients=TRAINED * int(given["steps"]))


def _each_refined_layer(request: LayerRequest, _: Mapping[str, Any]) -> Cost:
    layers = len(request.query.layers) or len(blocks(request.classifier))
    return Cost(gradients=REFINED * layers * request.image_count)


def _each_band(request: LayerRequest, given: Mapping[str, Any]) -> Cost:
    return Cost(gradients=WALK // 3 * int(given["bands"]) * min(request.image_count, int(given["images"])))


def _each_method(request: LayerRequest, given: Mapping[str, Any]) -> Cost | None:
    each = [cost_of(name.strip(), {}, request.classifier) for name in given["methods"].split(",")]
    known = [one for one in each if one is not None]
    twice = 2 * request.image_count
    every = Cost(twice * sum(one.forwards for one in known), twice * sum(one.gradients for one in known))
    return every if len(known) == len(each) else None


def _each_step(request: LayerRequest, given: Mapping[str, Any]) -> Cost:
    steps = sum(STEPS.get(name.strip(), MOST_STEPS) for name in given["names"].split(","))
    return Cost(gradients=request.image_count * steps * _many(given["radii"]))


def _each_walk(request: LayerRequest, given: Mapping[str, Any]) -> Cost:
    return Cost(gradients=WALK * min(request.image_count, int(given["images"])))


def _each_radius(request: LayerRequest, given: Mapping[str, Any]) -> Cost:
    return Cost(2 * request.image_count * _many(given["radii"]))


def _each_epoch(request: LayerRequest, given: Mapping[str, Any]) -> Cost:
    """Count the steps of training, and the measures of half of the images after some of the epochs."""
    half, moments = request.image_count // 2, len(list_epochs(int(given["epochs"])))
    each = half * (int(given["epochs"]) + moments * (1 + TrainingSettings.steps))
    return Cost(4 * half * moments * _many(given["kinds"]), each * _many(given["kinds"]))


def _each_query(request: LayerRequest, given: Mapping[str, Any]) -> Cost:  # noqa: ARG001
    sets = _many(given["outputs"]) if given["queries"] == "crafted" else 0
    return Cost(QUERIES * (1 + sets))


def _many(listed: str) -> int:
    return listed.count(",") + 1


PASSES: Mapping[str, Callable[[LayerRequest, Mapping[str, Any]], Cost | None]] = {
    "deletion": _each_unit,
    "attacks": _each_step,
    "margins": _each_walk,
    "frequencies": _each_radius,
    "bands": _each_band,
    "importance": _each_unit,
    "evidence": _each_method,
    "refinement": _each_refined_layer,
    "explainer": _each_training_step,
    "memorisation": _each_epoch,
    "attributes": _each_query,
}
"""Approximate passes through the network; a question that is not listed reads every layer once."""
