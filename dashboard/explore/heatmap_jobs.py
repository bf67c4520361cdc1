"""Background jobs: heatmaps and their measures, each with a key of everything it depends on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.attribution import METHODS
from core.attribution.cost import Cost, Pace, cost, pace
from core.classifier import Classifier
from core.errors import ForetellError
from core.faithfulness import FAITHFULNESS_MEASURES
from core.faithfulness.curves import Curve
from core.faithfulness.infidelity import Infidelity
from core.faithfulness.randomisation import Randomisation
from core.faithfulness.sensitivity import Sensitivity
from core.types import Explanation, Progress
from dashboard.shared.jobs import Job, pool
from dashboard.shared.keys import digest, tensor_digest

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
class MapRequest:
    """A request for one heatmap: of an input (C, H, W), for one class."""

    classifier: Classifier
    method: str
    inputs: Tensor
    target: int
    seed: int
    parameters: dict[str, Any]

    @cached_property
    def key(self) -> str:
        """Return the SHA-256 of everything the heatmap depends on."""
        settings = json.dumps([self.method, self.target, self.seed, self.parameters], sort_keys=True)
        return digest(self.classifier.fingerprint, settings, tensor_digest(self.inputs))

    def compute(self, progress: Progress) -> Explanation:
        """Compute the heatmap."""
        explanation: Explanation = METHODS[self.method](
            self.classifier,
            self.inputs[None],
            [self.target],
            generator=torch.Generator().manual_seed(self.seed),
            progress=progress,
            **self.parameters,
        )
        return explanation

    def ask(self) -> Job:
        """The job that makes it, or has made it."""
        return pool().ask(self.key, self.compute, self.seconds or 0.0)

    @property
    def seconds(self) -> float | None:
        """About how long it takes; 0 where it was begun already, None where it cannot be said."""
        return 0.0 if pool().find(self.key) else estimate(self.classifier, self.method, self.parameters)[1]


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


@dataclass(frozen=True)
class FaithfulnessRequest:
    """A request for the measures of a computed heatmap; ``mask`` are the object's pixels (H, W) of the input."""

    of: MapRequest
    explanation: Explanation
    mask: NDArray[np.bool_] | None = field(default=None, compare=False)

    @property
    def key(self) -> str:
        """SHA-256 over everything the measures depend on."""
        mask = b"" if self.mask is None else np.packbits(self.mask).tobytes()
        return digest("faithfulness", self.of.key, str(STEPS), str(SQUARES), str(POINTING), mask)

    def compute(self, progress: Progress) -> Faithfulness:
        """Take the measures."""
        evidence = self.explanation.evidence

        def curve(name: str, before: int) -> Curve:
            def report(done: int, total: int, what: str) -> None:
                progress(before * total + done, 2 * total, what)

            drawn: Curve = FAITHFULNESS_MEASURES[name](
                self.of.classifier, self.of.inputs[None], [self.of.target], evidence, steps=STEPS, progress=report
            )
            return drawn

        curves = curve("deletion", 0), curve("insertion", 1)
        missed: Infidelity = FAITHFULNESS_MEASURES["infidelity"](
            self.of.classifier, self.of.inputs[None], [self.of.target], evidence, samples=SQUARES, scaled=True
        )
        return Faithfulness(*curves, missed, *self._measure_localisation(evidence))

    def _measure_localisation(self, evidence: Tensor) -> tuple[Any, ...]:
        if self.mask is None or not self.mask.any():
            return ()
        inside = torch.from_numpy(self.mask)[None]
        tolerance = round(POINTING * max(self.mask.shape))
        shares = (float(FAITHFULNESS_MEASURES[name](evidence, inside)) for name in ("relevance_mass", "relevance_rank"))
        return (
            *shares,
            bool(FAITHFULNESS_MEASURES["pointing_hit"](evidence, inside, tolerance=float(tolerance))),
            tolerance,
        )

    def ask(self) -> Job:
        """The job that takes them, or has taken them."""
        return pool().ask(self.key, self.compute, self.seconds or 0.0)

    @property
    def seconds(self) -> float | None:
        """About how long they take."""
        speed = get_pace(self.of.classifier)
        return None if speed is None else (2 * STEPS + SQUARES) * speed.forward_s


@dataclass(frozen=True)
class Robustness:
    """Whether the method's heatmaps depend on the trained weights, and are stable under small changes of the image."""

    randomisation: Randomisation
    sensitivity: Sensitivity


@dataclass(frozen=True)
class RobustnessRequest:
    """A request for both, for one image, method and class; it computes many heatmaps."""

    of: MapRequest

    @property
    def key(self) -> str:
        """Return the SHA-256 of everything they depend on."""
        return digest("robustness", self.of.key, str(CHANGES))

    def compute(self, progress: Progress) -> Robustness:
        """Compute the heatmaps and compare them."""
        r = self.of
        shared = {"parameters": r.parameters, "progress": progress}

        def measure(name: str, **settings: Any) -> Any:
            generator = torch.Generator().manual_seed(r.seed)
            given = (r.classifier, r.inputs[None], [r.target], r.method)
            return FAITHFULNESS_MEASURES[name](*given, generator=generator, **shared, **settings)

        return Robustness(measure("cascading_randomisation"), measure("max_sensitivity", samples=CHANGES))

    def ask(self) -> Job:
        """The job that does so, or has done so."""
        return pool().ask(self.key, self.compute, self.seconds or 0.0)

    @property
    def seconds(self) -> float | None:
        """About how long it takes; 0 where it was begun already, None where it cannot be said."""
        if pool().find(self.key):
            return 0.0
        speed = get_pace(self.of.classifier)
        one = estimate(self.of.classifier, self.of.method, self.of.parameters)[1]
        if speed is None or one is None:
            return None
        layers = len(self.of.classifier.layers)
        return (layers + CHANGES + 3) * one + layers * REMADE * speed.forward_s


def estimate(classifier: Classifier, method: str, parameters: dict[str, Any]) -> tuple[Cost | None, float | None]:
    """Estimate the passes and seconds of a heatmap; None if unknown, or not known yet."""
    try:
        passes = cost(method, parameters, classifier)
    except ForetellError:
        return None, None  # the map itself will say what is wrong
    speed = get_pace(classifier)
    return passes, None if speed is None else speed.seconds(passes)


def get_pace(classifier: Classifier) -> Pace | None:
    """Return the speed of a network, measured once in the background; None until then."""
    job = pool().ask(digest("pace", classifier.fingerprint), lambda _: pace(classifier))
    job.wait(BRIEFLY_S)
    found: Pace | None = job.result
    return found


def estimate_seconds(key: str, classifier: Classifier, passes: Cost) -> float | None:
    """About how many seconds so many passes take; 0 where the work was begun already, None where nobody can say yet."""
    if pool().find(key):
        return 0.0
    speed = get_pace(classifier)
    return None if speed is None else speed.seconds(passes)
