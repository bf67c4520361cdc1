"""Nearest neighbours and outliers among images in a network's features, and a projection onto a plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata
from torch import Tensor
from torch.nn.functional import normalize

from core.errors import ForetellError
from core.types import Progress, silent

NEIGHBOURS = 10
ROWS = 256
"""Images compared with all others at a time."""


@dataclass(frozen=True)
class Neighbours:
    """The k nearest other images of each.

    Attributes
    ----------
    indices
        (N, k) int64, the nearest first.
    distances
        (N, k) float64, 0 to 2: between features of length 1.
    """

    indices: Tensor
    distances: Tensor

    @property
    def isolation(self) -> NDArray[np.float64]:
        """(N,): distance of the k-th neighbour, large for outliers (Sun et al. 2022, arXiv:2204.06507, section 3)."""
        farthest: NDArray[np.float64] = self.distances[:, -1].numpy()
        return farthest

    @property
    def rank(self) -> NDArray[np.int64]:
        """(N,): 1 is the farthest from all others; equals share the smallest rank."""
        ranks: NDArray[np.int64] = rankdata(-self.isolation, method="min").astype(np.int64)
        return ranks


def nearest(features: Tensor, k: int = NEIGHBOURS, *, progress: Progress = silent) -> Neighbours:
    """Find the neighbours of images by their ``features`` (N, M), scaled to length 1; all others if fewer than k.

    Raises
    ------
    ForetellError
        Fewer than two images.
    """
    if len(features) < 2:
        raise ForetellError("A single image has no neighbours: give a set of two or more.")
    x = normalize(features.double().flatten(1))
    k = min(k, len(x) - 1)
    neighbours = []
    for start in range(0, len(x), ROWS):
        alike = x[start : start + ROWS] @ x.T
        alike.diagonal(start).fill_(-torch.inf)
        neighbours.append(alike.topk(k))
        progress(min(start + ROWS, len(x)), len(x), "finding the nearest images")
    closeness = torch.cat([one.values for one in neighbours])
    return Neighbours(torch.cat([one.indices for one in neighbours]), (2 - 2 * closeness).clamp(min=0).sqrt())


def principal_plane(features: Tensor) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Project images (N, 2) onto the two axes along which ``features`` (N, M) vary most; return the axes' shares (2,).

    The shares are of the whole variance. Of an axis the largest loading is positive, so that the same features lie
    the same way everywhere.

    Raises
    ------
    ForetellError
        All images have the same features, or there is but one feature.
    """
    x = features.double().flatten(1).numpy()
    if x.shape[1] < 2 or not np.ptp(x, axis=0).any():
        raise ForetellError("The network's features do not differ between these images: there is nothing to project.")
    plane = fit_components(x, 2)  # it turns each axis as said
    return plane.transform(x), plane.explained_variance_ratio_


def fit_components(x: NDArray[np.float64], count: int) -> Any:
    """Fit the first principal components, at most ``count``, to rows (N, M): a `PCA` of scikit-learn."""
    from sklearn.decomposition import PCA  # seconds, which only a fit is to cost

    most = min(x.shape)
    return PCA(min(count, most), svd_solver="arpack" if count < most else "full", random_state=0).fit(x)
