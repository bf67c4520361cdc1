"""One participant's order of trials: a seeded shuffle without long runs of the AI's prediction on one side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

LONGEST_RUN = 3
FEW_TABLES = 8
"""Tables kept: participants of a study differ in which side is which, so that two tables serve them all."""


def shuffle_trials(sides: Sequence[bool], rng: np.random.Generator, longest: int = LONGEST_RUN) -> list[int]:
    """Return a random order of trials with at most `longest` equal sides in a row.

    Every admissible pattern of sides is equally likely (each step is drawn in proportion to the number of
    admissible completions), and within a side every order of trials is. Where no such pattern exists, the
    shortest possible longest run is used.

    Parameters
    ----------
    sides
        Side of the AI's prediction (True: left) of each trial.
    rng
        The participant's generator.
    longest
        Longest admissible run.

    Returns
    -------
    list of int
        Indices into `sides`.
    """
    pools = {side: [i for i in rng.permutation(len(sides)).tolist() if sides[i] == side] for side in (True, False)}
    fewer, more = sorted(len(pool) for pool in pools.values())
    # The more frequent side makes at most one run more than the other, before, between and after its runs.
    longest = max(longest, -(-more // (fewer + 1)))
    return [pools[side].pop() for side in _pattern(len(pools[True]), len(pools[False]), longest, rng)]


def _pattern(left: int, right: int, longest: int, rng: np.random.Generator) -> list[bool]:
    """Return a uniformly drawn admissible pattern; True is left."""
    begins_left, begins_right = _log_counts(left, right, longest)
    pattern: list[bool] = []
    may_left = may_right = longest
    while left or right:
        # After one more left come up to may_left - 1 others, then a run of the right; and the other way round.
        if_left = _sum(begins_right[left - k, right] for k in range(1, 1 + min(left, may_left)))
        if_right = _sum(begins_left[left, right - k] for k in range(1, 1 + min(right, may_right)))
        go_left = rng.random() < np.exp(if_left - np.logaddexp(if_left, if_right))
        pattern.append(bool(go_left))
        if go_left:
            left, may_left, may_right = left - 1, may_left - 1, longest
        else:
            right, may_left, may_right = right - 1, longest, may_right - 1
    return pattern


@lru_cache(FEW_TABLES)
def _log_counts(left: int, right: int, longest: int) -> tuple[np.ndarray, np.ndarray]:
    """Count (log) the admissible patterns of (i, j) sides that begin with a left run, and with a right one.

    Each is (left + 1, right + 1), -inf where there is none; nothing at all counts as one pattern of either kind.
    Counted exactly these numbers have as many digits as there are trials: thousands of trials would take gigabytes.
    """
    shape = (left + 1, right + 1)
    begins_left, begins_right = np.full(shape, -np.inf), np.full(shape, -np.inf)
    begins_left[0, 0] = begins_right[0, 0] = 0.0
    for i in range(left + 1):
        for k in range(1, 1 + min(i, longest)):
            begins_left[i] = np.logaddexp(begins_left[i], begins_right[i - k])
        for k in range(1, 1 + min(right, longest)):
            begins_right[i, k:] = np.logaddexp(begins_right[i, k:], begins_left[i, :-k])
    return begins_left, begins_right


def _sum(logs: Iterable[float]) -> float:
    return float(np.logaddexp.reduce([-np.inf, *logs]))
