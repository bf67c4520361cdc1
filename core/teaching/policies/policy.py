"""A teaching policy: what it is asked, and what it chooses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from core.teaching.kfac import KroneckerPrior
from core.teaching.scoring import Scorer

PER_CATEGORY = 2
"""Examples of each category in a teaching set."""
TIE = 1e-12
"""Values closer than this are equal: their last digits are rounding."""


@dataclass(frozen=True)
class ScoredSets:
    """Sets in the order they were scored, (S, 4) of local indices, and their probabilities (S,)."""

    sets: Tensor
    probabilities: Tensor

    def extreme(self, sign: int) -> int:
        """Return the largest (1) or smallest (-1); of equals the first by its images, whatever the order of scoring."""
        values = sign * self.probabilities
        equal = torch.nonzero(values >= values.max() - TIE)[:, 0]
        base = int(self.sets.max()) + 1
        key = torch.zeros(len(equal), dtype=torch.long)
        for column in self.sets[equal].T:
            key = key * base + column
        return int(equal[key.argmin()])


@dataclass(frozen=True)
class TeachingQuery:
    """What a policy chooses from.

    Attributes
    ----------
    features
        Of the N candidates (N, M), or of augmented copies of each (N, C, M); those of the target category first.
    targets
        How many candidates are of the target category.
    image
        The target image's features (M,).
    classes
        (target, foil) class indices: the categories of the candidates.
    scorer, drawn
        The learner, and the randomly drawn sets with the learner's probability after each.
    threshold
        Probability that the policy ``first`` asks for.
    """

    prior: KroneckerPrior
    features: Tensor
    targets: int
    image: Tensor
    classes: tuple[int, int]
    scorer: Scorer
    drawn: ScoredSets
    threshold: float

    @property
    def copies(self) -> Tensor:
        """The features as (N, C, M), with C = 1 where there are no augmented copies."""
        return self.features if self.features.ndim == 3 else self.features[:, None]

    @property
    def labels(self) -> Tensor:
        """The class (N,) of each candidate: the network's prediction for it."""
        target, foil = self.classes
        return torch.where(torch.arange(len(self.features)) < self.targets, target, foil)

    def take_highest(self, scores: Tensor) -> Tensor:
        """Return the set (4,) of the candidates with the highest scores (N,) of each category.

        Scores closer than `TIE` of the largest absolute score are equal, and the first in the pool is taken. The two
        of a category are in the order of the pool, so that their places on a screen do not depend on the policy.
        """
        chosen = [
            start + member
            for start, side in ((0, scores[: self.targets]), (self.targets, scores[self.targets :]))
            for member in sorted(_list_highest(side, TIE * float(scores.abs().max())))
        ]
        return torch.tensor(chosen)


def _list_highest(scores: Tensor, tolerance: float) -> list[int]:
    left, indices = scores.clone(), []
    for _ in range(PER_CATEGORY):
        indices.append(int(torch.nonzero(left >= left.max() - tolerance)[0]))
        left[indices[-1]] = -torch.inf
    return indices


@dataclass(frozen=True)
class ChosenExamples:
    """A policy's choice: candidates (4,), the target category's first.

    Attributes
    ----------
    probability
        The learner's after this set, where the policy has scored it.
    scored
        Sets that were scored to find it, besides the random ones.
    curve
        (sets scored, best probability so far) pairs of its own search; empty where it has none.
    """

    members: Tensor
    probability: float | None = None
    scored: int = 0
    curve: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Policy:
    """A teaching policy.

    Attributes
    ----------
    choose
        Returns the choice, or None where no set will do.
    reason
        Why this set, as a phrase for a page; ``{scored:,}`` is the number of sets that were
        scored, ``{threshold:.0%}`` that of the study.
    of_drawn
        Whether it chooses among the randomly drawn sets; the choice of the others does not depend on them.
    """

    choose: Callable[[TeachingQuery], ChosenExamples | None]
    reason: str
    of_drawn: bool = False
