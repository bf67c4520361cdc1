"""Nearest examples: those that are most like the target image for the network."""

from __future__ import annotations

import torch
from torch import Tensor

from core.teaching.policies.policy import ChosenExamples, Policy, TeachingQuery

ENTRIES = 2**22
"""Entries of the largest matrix made at once: 32 MB in float64."""


def compute_distances(features: Tensor, image: Tensor) -> Tensor:
    """Compute Euclidean distances (N,) float64 of features (N, M) from those of one image (M,)."""
    size = max(1, ENTRIES // features.shape[-1])
    return torch.cat([(part.double() - image.double()).norm(dim=-1) for part in torch.split(features, size)])


def choose_nearest(query: TeachingQuery) -> ChosenExamples:
    """Take the images of each category nearest to the target image in the last layer's features (arXiv:2006.04528).

    Hanawa et al. 2021 compare this baseline with influence. The distance of an image with augmented copies is their
    mean distance.
    """
    copies = query.copies
    distances = compute_distances(copies.flatten(0, 1), query.image).view(copies.shape[:2]).mean(1)
    return ChosenExamples(query.take_highest(-distances))


NEAREST = Policy(choose_nearest, "the two images of each category nearest to the image in the network's features")
