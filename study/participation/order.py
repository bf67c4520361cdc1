"""One person's order of trials: a seeded shuffle in which the AI's answers do not pile up on one side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

LONGEST_RUN = 3


def shuffled(sides: Sequence[bool], rng: np.random.Generator, longest: int = LONGEST_RUN) -> list[int]:
    """A random order of trials with at most `longest` equal sides in a row.

    Every admissible pattern of sides is equally likely (each step is drawn in proportion to the number of
    admissible completions), and within a side every order of trials is. Where no such pattern exists, the
    shortest possible longest run is used.

    Parameters
    ----------
    sides
        Side of the AI's answer (True: left) of each trial.
    rng
        The person's generator.
    longest
        Longest admissible run.

    Returns
    -------
    list of int
        Indices into `sides`.
    """
    pools = {side: [i for i in rng.permutation(len(sides)).tolist() if sides[i] == side] for side in (True, False)}
    left, right = len(pools[True]), len(pools[False])
    while not _count(left, right, longest):
        longest += 1
    return [pools[side].pop() for side in _pattern(left, right, longest, rng)]


def _count(left: int, right: int, longest: int) -> int:
    """Number of admissible patterns; counted from the shortest on, so that no recursion goes deep."""
    return [_completions(i, j, longest, longest) for i in range(left + 1) for j in range(right + 1)][-1]


def _pattern(left: int, right: int, longest: int, rng: np.random.Generator) -> list[bool]:
    """A uniformly drawn admissible pattern; True is left."""
    pattern: list[bool] = []
    may_left = may_right = longest
    while left or right:
        if_left = _completions(left - 1, right, may_left - 1, longest) if left and may_left else 0
        if_right = _completions(left, right - 1, longest, may_right - 1) if right and may_right else 0
        go_left = rng.random() < if_left / (if_left + if_right)
        pattern.append(go_left)
        if go_left:
            left, may_left, may_right = left - 1, may_left - 1, longest
        else:
            right, may_left, may_right = right - 1, longest, may_right - 1
    return pattern


@cache
def _completions(left: int, right: int, may_left: int, may_right: int) -> int:
    """Number of admissible patterns of what is left, with so many more of each side allowed at once.

    One of the two allowances is always the full one, so the longest run is the larger of them.
    """
    if not left and not right:
        return 1
    longest = max(may_left, may_right)
    total = 0
    if left and may_left:
        total += _completions(left - 1, right, may_left - 1, longest)
    if right and may_right:
        total += _completions(left, right - 1, longest, may_right - 1)
    return total
