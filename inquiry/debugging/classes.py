"""How well a network does on each class of a set: sensitivity, precision, and the area under the ROC curve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

LEVEL = 0.95
COLUMNS = ("class", "images", "sensitivity", "precision", "auc", "auc_low", "auc_high")
Floats = NDArray[np.float64]


def tabulate_classes(
    probabilities: Floats, truth: NDArray[np.int64], names: Sequence[str], level: float = LEVEL
) -> pd.DataFrame:
    """Tabulate each class that occurs among the labels, the one with the smallest area first.

    Parameters
    ----------
    probabilities, truth
        Predicted probabilities (N, K) and labels (N,) of images whose label is one of the K classes.
    names
        Names of the K classes.

    Returns
    -------
    DataFrame
        `COLUMNS`: the images of the class; the share of them that is predicted to be of it; the share of the images
        predicted to be of it that are; and how well its probability tells its images from all others, with an
        interval. NaN where a share is of nothing, or all images are of one class.
    """
    predicted, rows = probabilities.argmax(1), []
    for k in np.unique(truth):
        mine = truth == k
        right = float((predicted[mine] == k).sum())
        area = compute_auc(probabilities[mine, k], probabilities[~mine, k], level)
        said = int((predicted == k).sum())
        rows.append((names[k], int(mine.sum()), right / mine.sum(), right / said if said else np.nan, *area))
    return pd.DataFrame(rows, columns=list(COLUMNS)).sort_values(["auc", "class"], ignore_index=True)


def compute_auc(positives: Floats, negatives: Floats, level: float = LEVEL) -> tuple[float, float, float]:
    """Return the area under the ROC curve and its interval, (area, low, high).

    The area is the share of pairs of a positive (M,) and a negative (N,) of which the positive is larger, ties counted
    half. Its variance is DeLong's (DeLong, DeLong & Clarke-Pearson 1988, eq. 4 to 6); the interval is symmetric in the
    log-odds, so that it stays between 0 and 1 (Pepe 2003, section 5.2). Where no pair is out of order, or every one
    is, the variance is 0 and says nothing: then the interval is that of the rule of three for the smaller group.
    """
    m, n = len(positives), len(negatives)
    if not m or not n:
        return np.nan, np.nan, np.nan
    above = _place(positives, negatives)  # of each positive, the share of negatives below it
    area = float(above.mean())
    bound = min(1.0, 3 / min(m, n))
    if area in (0.0, 1.0):
        return area, max(0.0, area - bound), min(1.0, area + bound)
    below = 1 - _place(negatives, positives)
    variance = sum(float(part.var(ddof=1)) / len(part) for part in (above, below) if len(part) > 1)
    if not variance:
        return area, np.nan, np.nan
    half = ndtri((1 + level) / 2) * np.sqrt(variance) / (area * (1 - area))
    low, high = (1 / (1 + np.exp(-(np.log(area / (1 - area)) + side * half))) for side in (-1, 1))
    return area, float(low), float(high)


def _place(values: Floats, among: Floats) -> Floats:
    """Return of each value the share of ``among`` that is smaller, ties counted half."""
    ordered = np.sort(among)
    left, right = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    placed: Floats = (left + right) / (2 * len(among))
    return placed
