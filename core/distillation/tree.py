"""Classification trees: which rules give the predictions of a network.

CART (Breiman, Friedman, Olshen & Stone 1984) by scikit-learn, with Gini's impurity, grown best first: the leaf is split
next whose best split lowers the impurity of the whole set most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import ForetellError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
LEAST_GAIN = 1e-12
"""Decrease of the impurity of the whole set below which a leaf is not split: 0, up to rounding."""


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


def fit_tree(features: Floats, classes: Integers, *, leaves: int, smallest: int = 5) -> Tree:
    """Fit a tree to features (N, D) and the classes (N,) that a network predicts, 0 to K - 1.

    Of several splits that are the best, the one that is taken is the same in each call.

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
    from sklearn.tree import DecisionTreeClassifier  # seconds, which only a fit is to cost

    fitted = DecisionTreeClassifier(
        max_leaf_nodes=leaves, min_samples_leaf=smallest, min_impurity_decrease=LEAST_GAIN, random_state=0
    ).fit(features, classes)
    ends, most = fitted.apply(features), int(classes.max()) + 1
    paths = _list_paths(fitted.tree_)
    return Tree(tuple(Leaf(path, np.bincount(classes[ends == end], minlength=most)) for end, path in paths))


def _list_paths(tree: Any) -> list[tuple[int, tuple[Step, ...]]]:
    """List the leaves of a tree by their number, each with the conditions that lead to it."""
    paths: dict[int, tuple[Step, ...]] = {0: ()}
    for node, left in enumerate(tree.children_left):  # a node's children come after it
        if left >= 0:
            path, step = paths.pop(node), (int(tree.feature[node]), float(tree.threshold[node]))
            paths[int(left)] = (*path, Step(*step, above=False))
            paths[int(tree.children_right[node])] = (*path, Step(*step, above=True))
    return sorted(paths.items())
