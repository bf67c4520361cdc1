"""Rules that give a network's predictions, and how often they do on images that they were not fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from core.distillation.factors import Clause, FactorColumn, simplify_rule
from core.distillation.tree import Floats, Integers, Tree, fit_tree
from core.errors import ForetellError
from core.shares import Share, share_of

HELD_OUT = 1 / 3
"""Share of the images that the rules are judged on."""
FEWEST = 30
"""Images from which rules are fitted and judged."""


@dataclass(frozen=True)
class Rules:
    """Rules with their fidelity.

    Attributes
    ----------
    tree, columns
        The rules, and what their features are.
    fitted, judged
        Rows of the images that the rules were fitted to, and of the others.
    counts
        Judged images (L, K) that meet each rule, by predicted class.
    fidelity
        Share of the judged images of which the rules give the network's prediction.
    chance
        The same of the fitted images' most common prediction.
    """

    tree: Tree
    columns: tuple[FactorColumn, ...]
    fitted: Integers
    judged: Integers
    counts: Integers
    fidelity: Share
    chance: Share

    def read_rule(self, leaf: int) -> tuple[Clause, ...]:
        """Return what a rule says of each factor."""
        return simplify_rule(self.tree.leaves[leaf], self.columns)


def fit_rules(
    features: Floats,
    columns: Sequence[FactorColumn],
    classes: Integers,
    *,
    leaves: int,
    smallest: int = 5,
    generator: torch.Generator | None = None,
) -> Rules:
    """Fit a tree to two thirds of the images, features (N, D) and predictions (N,), and judge it on the others.

    Raises
    ------
    ForetellError
        Fewer than 30 images; or as in `core.distillation.tree.fit_tree`.
    """
    if len(classes) < FEWEST:
        raise ForetellError(f"Rules need at least {FEWEST} images, not {len(classes)}: give more of them.")
    order = torch.randperm(len(classes), generator=generator or torch.Generator().manual_seed(0)).numpy()
    judged, fitted = np.split(order, [round(HELD_OUT * len(order))])
    tree = fit_tree(features[fitted], classes[fitted], leaves=leaves, smallest=smallest)
    met = tree.locate(features[judged])
    counts: NDArray[np.int64] = np.zeros((len(tree.leaves), int(classes.max()) + 1), dtype=np.int64)
    np.add.at(counts, (met, classes[judged]), 1)
    said = np.array([leaf.most_common for leaf in tree.leaves])[met]
    common = np.bincount(classes[fitted]).argmax()
    agreeing, usual = int((said == classes[judged]).sum()), int((classes[judged] == common).sum())
    among = len(judged)
    return Rules(tree, tuple(columns), fitted, judged, counts, share_of(agreeing, among), share_of(usual, among))
