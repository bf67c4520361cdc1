"""Likely label errors, by confident learning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import ForetellError

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
NONE = -1


@dataclass(frozen=True)
class LabelErrors:
    """Estimates of label errors from a network's predictions.

    Attributes
    ----------
    thresholds
        (K,): the network's mean confidence in each class over the images labelled with it; NaN without any.
    counted
        (K, K): the confident joint, images labelled with the row and counted as the column.
    joint
        (K, K): the same as shares of all labelled images, each row brought to the share of its label.
    instead
        (N,): the class that an image is counted as; -1 where the network is sure enough of none, or without a label.
    likely
        (N,) bool: counted as another class than its label.
    margin
        (N,): probability of the label less the largest other one; NaN without a label. The lowest are the likeliest.
    """

    thresholds: Floats
    counted: Indices
    joint: Floats
    instead: Indices
    likely: NDArray[np.bool_]
    margin: Floats

    @property
    def share(self) -> float:
        """Estimated share of wrong labels: the part of `joint` off its diagonal."""
        return float(1 - self.joint.trace())


def confident_learning(probabilities: ArrayLike, labels: ArrayLike) -> LabelErrors:
    """Judge ``labels`` (N,), -1 where there is none, by predictions (N, K).

    Northcutt et al. 2021 (arXiv:1911.00068): thresholds of equation 2, confident joint of equation 1, its calibration
    of equation 3, errors from off its diagonal (their method 2). It assumes predictions for images that the network was
    not trained on, and that it errs less often than it is sure: where it is sure and wrong, right labels are named.

    Raises
    ------
    ForetellError
        Predictions and labels do not belong together, or fewer than two classes are among the labels.
    """
    p, y = np.asarray(probabilities, np.float64), np.asarray(labels, np.int64)
    if p.ndim != 2 or len(p) != len(y):
        raise ForetellError(f"Predictions {p.shape} and labels {y.shape} do not match: give (N, K) and (N,).")
    known = y != NONE
    sizes = np.bincount(y[known], minlength=p.shape[1])
    if (sizes > 0).sum() < 2:
        raise ForetellError("Label errors are detected among images of two or more classes: give a set with more.")
    thresholds = _thresholds(p, y, sizes)
    sure = np.where(p >= np.where(sizes > 0, thresholds, np.inf), p, -np.inf)
    instead = np.where(known & np.isfinite(sure).any(1), sure.argmax(1), NONE)
    counted = np.zeros((p.shape[1], p.shape[1]), dtype=np.int64)
    is_suspect = instead != NONE
    np.add.at(counted, (y[is_suspect], instead[is_suspect]), 1)
    rows = counted / np.maximum(counted.sum(1, keepdims=True), 1) * sizes[:, None]
    return LabelErrors(thresholds, counted, rows / rows.sum(), instead, is_suspect & (instead != y), _margins(p, y))


def _thresholds(p: Floats, y: Indices, sizes: Indices) -> Floats:
    """Compute equation 2, at most the class's highest confidence, which a mean of equal numbers can exceed."""
    thresholds = np.full(p.shape[1], np.nan)
    for k in np.flatnonzero(sizes):
        own = p[y == k, k]
        thresholds[k] = min(own.mean(), own.max())
    return thresholds


def _margins(p: Floats, y: Indices) -> Floats:
    rows = np.arange(len(y))
    others = p.copy()
    others[rows, y] = -np.inf
    margins: Floats = np.where(y == NONE, np.nan, p[rows, y] - others.max(1))
    return margins
