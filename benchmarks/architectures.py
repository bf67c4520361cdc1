"""Every heatmap method on twelve architectures with random weights: right, refused in words, or with a warning.

``python foretell.py bench architectures``, or ``python -m benchmarks.architectures [--methods a,b] [--networks vit]``.
`benchmarks.planted` makes the networks and plants evidence in them, `benchmarks.definitions` writes methods out slowly,
and `benchmarks.checks` states what has to hold. A row is one cell. Rows are saved one by one in ``--rows FILE``, so
that an interrupted run resumes.
"""

from __future__ import annotations

import copy
import time
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

from benchmarks import checks
from benchmarks.checks import ALIGNED, BLIND_TO_QUARTER, EXACT, PLANS, Finding, Plant
from benchmarks.definitions import DEFINITIONS
from benchmarks.planted import (
    ARCHITECTURES,
    Architecture,
    Window,
    choose_image,
    make_classifier,
    plant_behind,
    randomise,
    read_layer,
    spread_logits,
)
from benchmarks.rows import Rows, run_by_method
from core.attribution import METHODS
from core.network.classifier import Classifier
from core.types import Explanation

PATCHES = 3
"""Patches by which an image is rolled down."""


class Subject:
    """One architecture with evidence planted in it, one of its images, and its class."""

    def __init__(self, name: str, plant: Plant) -> None:
        self.architecture = ARCHITECTURES[name]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.network = _plant(self.architecture, plant)
        self.classifier: Classifier = make_classifier(self.network, self.architecture.side, name)
        self.image, self.target = choose_image(self.classifier)

    @cached_property
    def slow(self) -> nn.Module:
        """The network in float64."""
        return copy.deepcopy(self.network).double()

    @cached_property
    def places(self) -> int:
        """Places a side of the layer."""
        output = read_layer(self.network, self.architecture.layer, self.image)
        return self.architecture.to_maps(output).shape[2]

    def explain(self, method: str, image: Tensor) -> Explanation:
        """Explain an image by the method with the settings of its plan."""
        settings = dict(PLANS[method].settings)
        if method in ALIGNED:
            settings["stride"] = self.architecture.side // 8
        generator = torch.Generator().manual_seed(0)
        explain = METHODS[method]
        explanation: Explanation = explain(self.classifier, image, [self.target], generator=generator, **settings)
        return explanation

    def measure(self, method: str) -> tuple[Explanation, list[Finding]]:
        """Explain the image and apply the checks of the method's plan."""
        plan = PLANS[method]
        explanation = self.explain(method, self.image)
        evidence, failures = explanation.evidence[0], []
        if plan.place is not None:
            noise = None if explanation.error is None or plan.place == EXACT else explanation.error[0]
            failures.append(checks.check_place(evidence, plan.place, noise))
        if plan.baseline:
            change = self.measure_change(plan.baseline)
            failures += [checks.check_sum(evidence, change), checks.check_size(evidence, change)]
        if plan.defined and (method != "lrp_0" or self.architecture.rectified):
            failures.append(checks.check_definition(evidence, self.define(method)))
        if method in BLIND_TO_QUARTER:
            failures.append(checks.check_blind(evidence, self.places))
        if plan.plant == "tokens":
            pixels = PATCHES * self.architecture.patch
            shifted = self.explain(method, self.image.roll(pixels, 2)).evidence[0]
            failures.append(checks.check_shift(evidence, shifted, self.places, PATCHES))
        return explanation, failures

    def define(self, method: str) -> Tensor:
        """Compute the heatmap by its definition."""
        fill = {"fill": self.classifier.fill("mean").double()} if method == "score_cam" else {}
        return DEFINITIONS[method](self.slow, self.image.double(), self.target, self.architecture, **fill)

    @torch.no_grad()
    def measure_change(self, baseline: str) -> float:
        """Return how far the logit of the image lies above the baseline's."""
        both = torch.stack([self.image[0], self.classifier.fill(baseline)]).double()
        logits = self.slow(both)[:, self.target]
        return float(logits[0] - logits[1])


def _plant(architecture: Architecture, plant: Plant) -> nn.Module:
    network = randomise(architecture.build(), architecture.side)
    if plant == "layer":
        network = plant_behind(network, architecture)
    if plant == "tokens" and architecture.positions:
        with torch.no_grad():
            network.get_parameter(architecture.positions).zero_()
    if plant == "image":
        network = Window(network)
    return spread_logits(network, architecture.side)


def measure(networks: list[str], methods: list[str], rows: Rows) -> dict[str, Any]:
    """Measure the cells of the table, by architecture and method."""
    table: dict[str, Any] = {name: {} for name in networks}
    with tqdm(total=len(networks) * len(methods), unit="cell") as bar:
        for name in networks:
            subjects: dict[Plant, Subject] = {}
            for method in methods:
                known = rows.get(name, method)
                table[name][method] = known or rows.add(_measure_cell(subjects, name, method), name, method)
                bar.update()
    return table


def _measure_cell(subjects: dict[Plant, Subject], name: str, method: str) -> dict[str, Any]:
    plant = PLANS[method].plant
    if plant not in subjects:
        subjects[plant] = Subject(name, plant)
    start = time.process_time()
    row = checks.judge(partial(subjects[plant].measure, method))
    return row | {"seconds": round(time.process_time() - start, 2)}


if __name__ == "__main__":
    run_by_method("architectures", ARCHITECTURES, measure)
