"""Whether drawn images show the concept that they were drawn with: a linear reader of the concept, from pixels."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, one_hot

SIDE = 8
"""Largest side of the grid of mean colours that is read."""
RIDGE = 1e-3
"""Added to each direction, as a share of the mean variance."""


@dataclass(frozen=True)
class ConceptReader:
    """A linear reader of the value of a concept: ``weights`` (D + 1, V) of a grid of mean colours."""

    weights: Tensor

    def read(self, images: Tensor) -> Tensor:
        """Read the value (B,) of images (B, C, H, W)."""
        return (_describe(images) @ self.weights).argmax(1)


def fit_reader(images: Tensor, conditions: Tensor, values: int) -> ConceptReader:
    """Fit by ridge regression the first condition of images (N, C, H, W), whole numbers below ``values``.

    Each combination of ``conditions`` (N, F) weighs the same, so that the class, which goes with the concept in these
    images, does not help to read it.
    """
    _, which, counts = torch.unique(conditions, dim=0, return_inverse=True, return_counts=True)
    weights = (1 / counts[which].double() / len(counts))[:, None]
    x, y = _describe(images), one_hot(conditions[:, 0], values).double()
    gram = x.T @ (weights * x)
    ridge = RIDGE * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype)
    return ConceptReader(torch.linalg.solve(gram + ridge, x.T @ (weights * y)))


def _describe(images: Tensor) -> Tensor:
    side = (min(SIDE, images.shape[2]), min(SIDE, images.shape[3]))
    pooled = adaptive_avg_pool2d(images, side).flatten(1).double()
    return torch.cat([pooled, torch.ones(len(pooled), 1, dtype=pooled.dtype)], 1)
