"""What the pages ask the pool for when a network is to be asked again under noise."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from core.classifier import Classifier
from core.types import Progress
from core.uncertainty import SAMPLERS, UNCERTAINTY_MEASURES
from core.uncertainty.measures import Estimate
from dashboard.explore.heatmap_jobs import get_pace
from dashboard.shared.jobs import Job, pool
from dashboard.shared.keys import digest, tensor_digest

PASSES = 100


@dataclass(frozen=True)
class UncertaintyResult:
    """The predictions for one image: probabilities (T, K) of T passes, and each measure of uncertainty."""

    answers: Tensor
    measures: dict[str, Estimate]


@dataclass(frozen=True)
class UncertaintyRequest:
    """One input (C, H, W) asked `PASSES` times by a registered sampler."""

    classifier: Classifier
    sampler: str
    inputs: Tensor
    seed: int

    @property
    def key(self) -> str:
        """Return the SHA-256 of everything the result depends on."""
        settings = f"{self.sampler}|{self.seed}|{PASSES}"
        return digest("doubt", self.classifier.fingerprint, settings, tensor_digest(self.inputs))

    def compute(self, progress: Progress) -> UncertaintyResult:
        """Ask."""
        answers: Tensor = SAMPLERS[self.sampler](
            self.classifier,
            self.inputs[None],
            passes=PASSES,
            generator=torch.Generator().manual_seed(self.seed),
            progress=progress,
        ).softmax(-1)
        return UncertaintyResult(answers[0], {name: measure(answers) for name, measure in UNCERTAINTY_MEASURES.items()})

    def ask(self) -> Job:
        """The job that asks, or has asked."""
        return pool().ask(self.key, self.compute, self.seconds or 0.0)

    @property
    def seconds(self) -> float | None:
        """About how long it takes at most: what comes before the noise is computed once."""
        speed = get_pace(self.classifier)
        return 0.0 if pool().find(self.key) else None if speed is None else 2 * PASSES * speed.forward_s
