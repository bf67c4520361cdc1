"""The greedy policy: a set built up image by image, then improved by exchanges; for pools too large to search."""

from __future__ import annotations

import torch
from torch import Tensor

from core.teaching.policies.policy import PER_CATEGORY, TIE, ChosenExamples, Policy, ScoredSets, TeachingQuery
from core.teaching.scoring import Scorer


def choose_greedily(query: TeachingQuery) -> ChosenExamples:
    """Build a set image by image, then exchange single images while that raises the learner's probability."""
    members, curve = _Exchange(query.scorer, query.targets, len(query.features)).run()
    scored, probability = curve[-1]
    return ChosenExamples(members, probability, scored, curve)


class _Exchange:
    """A set built up by turns from each category, then improved by exchanging one image at a time.

    Attributes
    ----------
    chosen, probability
        The set so far and what the learner says after it.
    scored
        Sets scored so far, those with fewer than four images included.
    """

    def __init__(self, scorer: Scorer, targets: int, candidates: int) -> None:
        self.scorer = scorer
        self.sides = [1.0, 0.0] * PER_CATEGORY
        self.of_side = {1.0: range(targets), 0.0: range(targets, candidates)}
        self.chosen: list[int] = []
        self.probability, self.scored = 0.0, 0

    def run(self) -> tuple[Tensor, tuple[tuple[int, float], ...]]:
        """Return the set that no exchange of one image makes better, and the curve of the search."""
        for place in range(len(self.sides)):
            image, self.probability = self._best(place)
            self.chosen.append(image)
        curve = [(self.scored, self.probability)]
        while self._sweep():
            curve.append((self.scored, self.probability))
        curve.append((self.scored, self.probability))
        return torch.tensor(sorted(self.chosen[::2]) + sorted(self.chosen[1::2])), tuple(curve)

    def _sweep(self) -> bool:
        """Try to exchange each image once; whether that made anything better."""
        before = self.probability
        for place in range(len(self.sides)):
            image, probability = self._best(place)
            if probability > self.probability + TIE:
                self.chosen[place], self.probability = image, probability
        return self.probability > before

    def _best(self, place: int) -> tuple[int, float]:
        """Return the best image for a place, the others as they are, and the probability with it."""
        others = [image for k, image in enumerate(self.chosen) if k != place]
        free = torch.tensor([i for i in self.of_side[self.sides[place]] if i not in others])
        size = max(len(self.chosen), place + 1)
        trials = torch.tensor([*self.chosen, -1][:size]).repeat(len(free), 1)
        trials[:, place] = free
        labels = torch.tensor(self.sides[:size], dtype=torch.float64)
        scored_sets = ScoredSets(trials, self.scorer.score(trials, labels))
        self.scored += len(free)
        index = scored_sets.extreme(1)
        return int(free[index]), float(scored_sets.probabilities[index])


GREEDY = Policy(choose_greedily, "searched image by image over the whole pool, so P can exceed that of every set drawn")
