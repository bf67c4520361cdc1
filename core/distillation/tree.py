"""Classification trees: which rules give the predictions of a network.

CART (Breiman, Friedman, Olshen & Stone 1984) with Gini's impurity, grown best first: the leaf is split next whose best
split lowers the impurity of the whole set most.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import ForetellError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
LEAST_GAIN = 1e-9
"""Decrease of the impurity, in images, below which a leaf is not split."""


@dataclass(frozen=True)
class Step:
    """One condition of a rule: a feature above a threshold, or at most the threshold."""

    feature: int
    threshold: float
    above: bool


@dataclass(frozen=True)
class Leaf:
    """One rule: its conditions from the root, and how many training images of each class meet them.

    Attributes
    ----------
    path
        Conditions, all of which hold.
    counts
        Images (K,) by class.
    """

    path: tuple[Step, ...]
    counts: Integers

    @property
    def most_common(self) -> int:
        """The most common class, the first of several."""
        return int(self.counts.argmax())

    def count_violations(self, features: Floats) -> Integers:
        """Count for each row (N, D) the conditions that it does not meet (N,)."""
        missed = [(features[:, step.feature] > step.threshold) != step.above for step in self.path]
        return np.sum(missed, axis=0, dtype=np.int64) if missed else np.zeros(len(features), dtype=np.int64)


@dataclass(frozen=True)
class Tree:
    """Rules of which each image meets exactly one."""

    leaves: tuple[Leaf, ...]

    def locate(self, features: Floats) -> Integers:
        """Return the number of the leaf whose rule each row (N, D) meets (N,)."""
        met: Integers = np.stack([leaf.count_violations(features) for leaf in self.leaves]).argmin(0)
        return met

    def predict(self, features: Floats) -> Integers:
        """Return the class (N,) that the rules give each row (N, D)."""
        said: Integers = np.array([leaf.most_common for leaf in self.leaves], dtype=np.int64)
        return said[self.locate(features)]


@dataclass(frozen=True)
class _Split:
    """The best split of a leaf's rows."""

    gain: float
    feature: int
    threshold: float


def fit_tree(features: Floats, classes: Integers, *, leaves: int, smallest: int = 5) -> Tree:
    """Fit a tree to features (N, D) and the classes (N,) that a network predicts, 0 to K - 1.

    Parameters
    ----------
    leaves
        Rules at most.
    smallest
        Images that a rule must hold for at least.

    Raises
    ------
    ForetellError
        No image, or fewer than 2 leaves.
    """
    if leaves < 2 or smallest < 1 or not len(features):
        raise ForetellError(
            f"A tree needs images, 2 or more leaves and 1 or more images in each, not {len(features)}, {leaves} and "
            f"{smallest}."
        )
    done: list[tuple[Integers, tuple[Step, ...]]] = []
    waiting = [_rank(features, classes, np.arange(len(classes)), (), smallest, 0)]
    ranked = 1
    while waiting and len(done) + len(waiting) < leaves:
        _, _, rows, path, split = heapq.heappop(waiting)
        if split is None:
            done.append((rows, path))
            continue
        above = features[rows, split.feature] > split.threshold
        for side in (False, True):
            step = Step(split.feature, split.threshold, side)
            heapq.heappush(waiting, _rank(features, classes, rows[above == side], (*path, step), smallest, ranked))
            ranked += 1
    ends = done + [(rows, path) for _, _, rows, path, _ in waiting]
    most = int(classes.max()) + 1
    return Tree(tuple(Leaf(path, np.bincount(classes[rows], minlength=most)) for rows, path in ends))


_Ranked = tuple[float, int, Integers, tuple[Step, ...], _Split | None]


def _rank(
    features: Floats, classes: Integers, rows: Integers, path: tuple[Step, ...], smallest: int, number: int
) -> _Ranked:
    """Return a leaf with its best split, in the order in which leaves are split; the number decides ties."""
    split = _find_split(features[rows], classes[rows], smallest)
    return (-split.gain if split else 0.0), number, rows, path, split


BLOCK = 4_000_000
"""Values that are sorted at a time."""


def _find_split(x: Floats, y: Integers, smallest: int) -> _Split | None:
    """Find the split of rows (N, D) that lowers Gini's impurity most, the first of several; None if none does."""
    best: _Split | None = None
    if len(y) < 2 * smallest:
        return None
    for start in range(0, x.shape[1], step := max(1, BLOCK // len(y))):
        for split in _rank_splits(x[:, start : start + step], y, smallest):
            if split.gain > (best.gain if best else LEAST_GAIN):
                best = _Split(split.gain, start + split.feature, split.threshold)
    return best


def _rank_splits(x: Floats, y: Integers, smallest: int) -> Iterator[_Split]:
    """Yield the best split of some features.

    With c_k images of class k on a side of n images, n times Gini's impurity is n - sum c_k^2 / n. The sum grows by
    2 r + 1 when an image is added whose class has r images on that side already.
    """
    order = x.argsort(0, kind="stable")
    values, labels = np.take_along_axis(x, order, 0), y[order]
    total = np.bincount(y)
    left = np.cumsum(2 * _count_earlier(labels) + 1, axis=0)[:-1]
    right = (total**2).sum() - 2 * np.cumsum(total[labels], axis=0)[:-1] + left
    size = np.arange(1, len(y))[:, None]
    gain = left / size + right / (len(y) - size) - (total**2).sum() / len(y)
    allowed = (values[:-1] < values[1:]) & (size >= smallest) & (len(y) - size >= smallest)
    gain = np.where(allowed, gain, -np.inf)
    for feature, row in enumerate(gain.argmax(0)):
        ends = values[row, feature], values[row + 1, feature]
        yield _Split(float(gain[row, feature]), feature, float(ends[0] + (ends[1] - ends[0]) / 2))


def _count_earlier(labels: Integers) -> Integers:
    """Count, for each entry of each column (N, D), the earlier ones of the same label."""
    order = labels.argsort(0, kind="stable")
    grouped = np.take_along_axis(labels, order, 0)
    rows = np.arange(len(labels))[:, None]
    first = np.ones(grouped.shape, dtype=bool)
    first[1:] = grouped[1:] != grouped[:-1]
    start = np.maximum.accumulate(np.where(first, rows, 0), axis=0)
    earlier = np.empty_like(order)
    np.put_along_axis(earlier, order, rows - start, 0)
    return earlier
