"""Conceptual sensitivity: how strongly the prediction for a single image rises along a concept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from core.concepts.tcav import draw_random_sets, read_layer
from core.concepts.vector import concept_vector
from core.network.classifier import Classifier
from core.network.device import draw_seed
from core.types import Progress, silent


@dataclass(frozen=True)
class Directions:
    """Unit vectors (D, R) of a concept at a ``layer``, and their mean accuracy on held-out images."""

    layer: str
    vectors: Tensor
    accuracy: float


def directions_of(
    classifier: Classifier,
    layer: str,
    concept: Tensor,
    random: Tensor,
    *,
    runs: int = 10,
    penalty: float = 1.0,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
) -> Directions:
    """Learn ``runs`` vectors of images (N, C, H, W) of a concept, each against as many from others (M, C, H, W).

    The vectors of `core.concepts.tcav.tcav` under the same generator.

    Raises
    ------
    ForetellError
        Too few images, or a layer that says the same of all of them.
    """
    read = read_layer(classifier, torch.cat([concept, random]), [0] * (len(concept) + len(random)), layer, progress)
    own, pool = read[: len(concept)], read[len(concept) :]
    draws = torch.Generator().manual_seed(draw_seed(generator or torch.Generator().manual_seed(0)))
    vectors = [concept_vector(own, others, penalty=penalty) for others in draw_random_sets(own, pool, runs, draws)]
    return Directions(
        layer, torch.stack([one.direction for one in vectors], 1), sum(one.accuracy for one in vectors) / runs
    )


def derivatives(
    classifier: Classifier, images: Tensor, targets: Sequence[int], along: Directions, progress: Progress = silent
) -> Tensor:
    """Compute d logit[target] / d vector (B, R), float64: Kim et al. 2018 (arXiv:1711.11279), eq. 1."""
    slopes = read_layer(classifier, images, targets, along.layer, progress, what="gradient")
    return slopes.double() @ along.vectors.double()
