"""Background jobs: heatmaps and their measures, each with a key of everything it depends on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.attribution.cost import Cost, Pace, pace
from core.attribution.method import HeatmapMethod
from core.attribution.outside.external import ImageRecord, digest_of, reads_heatmaps, records_for
from core.attribution.records import cost_of, sign_of
from core.attribution.signs import Sign
from core.errors import ForetellError
from core.faithfulness import FAITHFULNESS_MEASURES
from core.faithfulness.curves import Curve
from core.faithfulness.infidelity import Infidelity
from core.faithfulness.randomisation import Randomisation
from core.faithfulness.sensitivity import Sensitivity
from core.names import format_name
from core.network.classifier import Classifier
from core.types import Explanation, Progress
from dashboard.explore.methods import open_offered
from dashboard.shared.jobs import Job, pool
from dashboard.shared.keys import digest, tensor_digest
from dashboard.shared.tasks import Task

STEPS = 50
"""Points of a deletion or insertion curve, besides its start."""
POINTING = 0.03
"""The pointing game's tolerance as a share of the image's side: 15 of the 500 px of the photographs it is from."""
SQUARES = 128
"""Perturbations of an infidelity."""
CHANGES = 10
"""Changed images of a sensitivity."""
REMADE = 100
"""Approximate cost in passes of reopening a network, once per layer."""
BRIEFLY_S = 0.25


@dataclass(frozen=True)
class HeatmapRequest:
    """A request for one heatmap: of an input (C, H, W), for one class; finished ones are found by ``record``."""

    classifier: Classifier
    method: str
    inputs: Tensor
    target: int
    seed: int
    parameters: dict[str, Any]
    record: ImageRecord | None = None

    @cached_property
    def heatmap_method(self) -> HeatmapMethod:
        """Return the method."""
        return open_offered(self.method, self.classifier)

    @cached_property
    def key(self) -> str:
        """Return the SHA-256 of everything the heatmap depends on."""
        settings = json.dumps([self.method, self.target, self.seed, self.parameters], sort_keys=True)
        parts = [self.classifier.fingerprint, settings, tensor_digest(self.inputs)]
        own = digest_of(self.heatmap_method, self.classifier)
        parts += [own] if own else []
        parts += [repr(self.record)] if reads_heatmaps(self.heatmap_method) else []
        return digest(*parts)

    def compute(self, progress: Progress) -> Explanation:
        """Compute the heatmap."""
        records = [] if self.record is None else [self.record]
        explanation: Explanation = self.heatmap_method(
            self.classifier,
            self.inputs[None],
            [self.target],
            generator=torch.Generator().manual_seed(self.seed),
            progress=progress,
            **records_for(self.heatmap_method, records),
            **self.parameters,
        )
        return explanation

    @property
    def class_name(self) -> str:
        """Return the short name of the class."""
        return self.classifier.names.short[self.target]

    @property
    def sign(self) -> Sign:
        """Return what the heatmap's values mean."""
        return sign_of(self.method, self.parameters)

    @property
    def task(self) -> Task:
        """Return the task that computes it."""
        return Task(
            self.key,
            self.compute,
            lambda: estimate(self.classifier, self.method, self.parameters)[1],
            f"Heatmap by {format_name(self.method)}",
        )


@dataclass(frozen=True)
class Faithfulness:
    """The measures of one heatmap; mass, rank and hit if the location of the object is known.

    ``hit`` allows ``tolerance`` px next to the object.
    """

    deletion: Curve
    insertion: Curve
    infidelity: Infidelity
    mass: float | None = None
    rank: float | None = None
    hit: bool | None = None
    tolerance: int | None = None


def make_faithfulness_task(of: HeatmapRequest, explanation: Explanation, mask: NDArray[np.bool_] | None = None) -> Task:
    """Return the task that measures a computed heatmap; ``mask`` are the object's pixels (H, W) of the input."""
    given, evidence = (of.classifier, of.inputs[None], [of.target]), explanation.evidence

    def compute(progress: Progress) -> Faithfulness:
        def curve(name: str, before: int) -> Curve:
            def report(done: int, total: int, what: str) -> None:
                progress(before * total + done, 2 * total, what)

            drawn: Curve = FAITHFULNESS_MEASURES[name](*given, evidence, steps=STEPS, progress=report)
            return drawn

        curves = curve("deletion", 0), curve("insertion", 1)
        missed: Infidelity = FAITHFULNESS_MEASURES["infidelity"](*given, evidence, samples=SQUARES, scaled=True)
        return Faithfulness(*curves, missed, *_measure_localisation(evidence, mask))

    key = digest(
        "faithfulness",
        *(of.key, str(STEPS), str(SQUARES), str(POINTING)),
        b"" if mask is None else np.packbits(mask).tobytes(),
    )
    return Task(key, compute, lambda: estimate_seconds(of.classifier, Cost(2 * STEPS + SQUARES)), "Faithfulness")


def _measure_localisation(evidence: Tensor, mask: NDArray[np.bool_] | None) -> tuple[Any, ...]:
    if mask is None or not mask.any():
        return ()
    inside, tolerance = torch.from_numpy(mask)[None], round(POINTING * max(mask.shape))
    shares = (float(FAITHFULNESS_MEASURES[name](evidence, inside)) for name in ("relevance_mass", "relevance_rank"))
    hit = FAITHFULNESS_MEASURES["pointing_hit"](evidence, inside, tolerance=float(tolerance))
    return (*shares, bool(hit), tolerance)


@dataclass(frozen=True)
class Robustness:
    """Whether the method's heatmaps depend on the trained weights, and are stable under small changes of the image."""

    randomisation: Randomisation
    sensitivity: Sensitivity


def make_robustness_task(of: HeatmapRequest) -> Task:
    """Return the task that measures both, for one image, method and class; it computes many heatmaps."""

    def compute(progress: Progress) -> Robustness:
        def measure(name: str, **settings: Any) -> Any:
            return FAITHFULNESS_MEASURES[name](
                *(of.classifier, of.inputs[None], [of.target], of.heatmap_method),
                generator=torch.Generator().manual_seed(of.seed),
                parameters=of.parameters,
                progress=progress,
                **settings,
            )

        return Robustness(measure("cascading_randomisation"), measure("max_sensitivity", samples=CHANGES))

    def estimate_all() -> float | None:
        one, layers = estimate(of.classifier, of.method, of.parameters)[1], len(of.classifier.layers)
        reopening = estimate_seconds(of.classifier, Cost(layers * REMADE))
        return None if one is None or reopening is None else (layers + CHANGES + 3) * one + reopening

    return Task(digest("robustness", of.key, str(CHANGES)), compute, estimate_all)


def estimate(classifier: Classifier, method: str, parameters: dict[str, Any]) -> tuple[Cost | None, float | None]:
    """Estimate the passes and seconds of a heatmap; None if unknown, or not known yet."""
    try:
        passes = cost_of(method, parameters, classifier)
    except ForetellError:
        return None, None  # the heatmap itself will report what is wrong
    return passes, None if passes is None else estimate_seconds(classifier, passes)


def start_pace_job(classifier: Classifier) -> Job:
    """Return the job that measures the speed of a network, once."""
    return pool().ask(digest("pace", classifier.fingerprint), lambda _: pace(classifier))


def get_pace(classifier: Classifier) -> Pace | None:
    """Return the speed of a network, measured once in the background; None until then."""
    job = start_pace_job(classifier)
    job.wait(BRIEFLY_S)
    measurement: Pace | None = job.result
    return measurement


def estimate_seconds(classifier: Classifier, passes: Cost) -> float | None:
    """Estimate the seconds of so many passes; None until the speed of the network is measured."""
    speed = get_pace(classifier)
    return None if speed is None else speed.seconds(passes)
