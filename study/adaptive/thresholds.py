"""Thresholds of staircases: the mean level of the last reversals, and a logistic psychometric function.

The function is fitted by maximum likelihood: P(correct) = expit(slope (threshold - level) + logit(target)), with a
threshold for each participant and one slope for all. The threshold is the level at which the target share is correct.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_expit, logit

Floats = NDArray[np.float64]
LAST, FIRST_OUT = 6, 2
"""Reversals that are averaged, and those before that are never, as the staircase is on its way."""
SLOPES = (-3.0, 3.0)
"""Log-odds per level among which the slope is looked for."""
STEPS, SMALL = 60, 1e-10


class Thresholds(NamedTuple):
    """A threshold of each participant with its standard error, in levels; NaN where all responses are alike.

    All are NaN where responses do not become less often correct with the level, by a ``slope`` above 0.
    """

    values: Floats
    ses: Floats
    slope: float


def list_reversals(levels: Sequence[float]) -> list[float]:
    """List the levels at which a staircase turned: after steps up the highest one, after steps down the lowest."""
    turns, direction = [], 0
    for before, after in pairwise(levels):
        new = int(np.sign(after - before))
        if new and direction and new != direction:
            turns.append(before)
        direction = new or direction
    return turns


def average_reversals(levels: Sequence[float]) -> tuple[float, float, int]:
    """Average the last reversals, an even number of them, with the standard error, taking them for independent.

    Returns
    -------
    (float, float, int)
        Mean, standard error and number; NaN, NaN and 0 with fewer than two after the first two.
    """
    turns = list_reversals(levels)
    kept = min(LAST, (len(turns) - FIRST_OUT) // 2 * 2)
    if kept < 2:
        return np.nan, np.nan, 0
    last = np.array(turns[-kept:], dtype=np.float64)
    return float(last.mean()), float(last.std(ddof=1) / np.sqrt(kept)), kept


def fit_thresholds(people: NDArray[np.int64], levels: Floats, right: NDArray[np.bool_], target: float) -> Thresholds:
    """Fit the function to all participants at once.

    Parameters
    ----------
    people
        Index of the participant of each response, from 0, (n,).
    levels, right
        Level of its trial and whether it was correct, (n,) both.
    """
    count = int(people.max()) + 1
    share = np.bincount(people, right, count) / np.bincount(people, minlength=count)
    mixed = (share > 0) & (share < 1)
    kept = mixed[people]
    own, x, signs = people[kept], levels[kept], np.where(right[kept], 1.0, -1.0)
    missing = np.full(count, np.nan)
    if not mixed.any() or np.ptp(x) == 0:
        return Thresholds(missing, missing, np.nan)
    best = minimize_scalar(
        lambda slope: -float(log_expit(signs * (_intercepts(slope, own, x, signs, count)[own] - slope * x)).sum()),
        bounds=SLOPES,
        method="bounded",
    )
    slope = float(best.x)
    if slope <= SMALL:
        return Thresholds(missing, missing, slope)
    at = _intercepts(slope, own, x, signs, count)
    p = expit(at[own] - slope * x)
    information = np.bincount(own, p * (1 - p), count)
    with np.errstate(divide="ignore"):
        ses = 1 / (slope * np.sqrt(information))
    values = (at - float(logit(target))) / slope
    return Thresholds(np.where(mixed, values, np.nan), np.where(mixed, ses, np.nan), slope)


def _intercepts(slope: float, own: NDArray[np.int64], x: Floats, signs: Floats, count: int) -> Floats:
    """Find each participant's log-odds at level 0 by Newton's method, which the logistic likelihood allows."""
    at = slope * np.bincount(own, x, count) / np.maximum(np.bincount(own, minlength=count), 1)
    for _ in range(STEPS):
        p = expit(at[own] - slope * x)
        gradient = np.bincount(own, (signs > 0) - p, count)
        step = np.clip(gradient / np.maximum(np.bincount(own, p * (1 - p), count), SMALL), -2, 2)
        at = at + step
        if np.abs(step).max() < SMALL:
            break
    return np.asarray(at, dtype=np.float64)
