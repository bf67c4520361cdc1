"""The background task of the uncertainty of one prediction: repeated passes under noise."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from core.attribution.cost import Cost
from core.network.classifier import Classifier
from core.types import Progress
from core.uncertainty import SAMPLERS, UNCERTAINTY_MEASURES
from core.uncertainty.measures import Estimate
from dashboard.explore.heatmap_jobs import estimate_seconds
from dashboard.shared.keys import digest, tensor_digest
from dashboard.shared.tasks import Task

PASSES = 100
"""The estimate counts them twice, at most: layers before the noise are computed only once."""


@dataclass(frozen=True)
class UncertaintyResult:
    """The sampled predictions for one image: probabilities (T, K) of T passes, and each measure of uncertainty."""

    probabilities: Tensor
    measures: dict[str, Estimate]


def make_uncertainty_task(classifier: Classifier, sampler: str, inputs: Tensor, seed: int) -> Task:
    """Return the task that passes one input (C, H, W) `PASSES` times through the network under noise."""

    def compute(progress: Progress) -> UncertaintyResult:
        generator = torch.Generator().manual_seed(seed)
        sampled: Tensor = SAMPLERS[sampler](
            classifier, inputs[None], passes=PASSES, generator=generator, progress=progress
        ).softmax(-1)
        return UncertaintyResult(sampled[0], {name: measure(sampled) for name, measure in UNCERTAINTY_MEASURES.items()})

    key = digest("uncertainty", classifier.fingerprint, f"{sampler}|{seed}|{PASSES}", tensor_digest(inputs))
    return Task(key, compute, lambda: estimate_seconds(classifier, Cost(2 * PASSES)))
