"""Bayesian teaching by examples: sets of four images from which the learner infers the classifier's prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from core.errors import ForetellError
from core.teaching.kfac import KroneckerPrior
from core.teaching.scoring import Scorer, halves
from core.types import TeachingSet

Policy = Literal["first", "best", "random", "unhelpful", "greedy"]
PER_CATEGORY = 2
MOST = 10_000_000
"""Teaching sets up to which all are enumerated: some 80 images of each category."""
TIE = 1e-12
"""Probabilities closer than this are equal: their last digits are rounding."""


@dataclass(frozen=True)
class Search:
    """The result of a search for a teaching set.

    Attributes
    ----------
    chosen
        None when the policy is ``first`` and no set is above the threshold.
    best
        The learner's largest probability after any set scored.
    scored
        Sets scored.
    """

    chosen: TeachingSet | None
    best: float
    scored: int


@dataclass(frozen=True)
class _ScoredSets:
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


def choose_examples(
    prior: KroneckerPrior,
    features: Tensor,
    of_target: Tensor,
    of_alternative: Tensor,
    image: Tensor,
    classes: tuple[int, int],
    *,
    generator: torch.Generator,
    policy: Policy = "first",
    sets: int | None = 200,
    threshold: float = 0.8,
    weight: float = 128.0,
    draws: int = 0,
) -> Search:
    """Score teaching sets, 2 of the target and 2 of the foil category, and choose one.

    Folke et al. 2021 (arXiv:2106.09106), eq. 1: P_teacher(D | c, x) is proportional to P_learner(Y = c | D, x).

    Parameters
    ----------
    features
        Pool features (N, M), or (N, C, M) of augmented copies.
    of_target, of_alternative
        Indices into the pool of the candidates of each category (the target image itself left out by the caller).
    image
        The target image's features (M,).
    classes
        (target, alternative) class indices.
    policy
        ``first`` with P above ``threshold`` (the paper), ``best``, ``random`` (a control), ``unhelpful`` (the minimum),
        ``greedy`` (built up image by image, then exchanged while that helps; its rank is among ``sets`` random ones).
    sets
        How many random sets to score, no two alike; None, or more than there are: all, in random order.
    weight
        How often each example enters the likelihood.
    draws
        Probabilities by so many Monte Carlo draws, as in the paper; 0 integrates.
    """
    if policy not in get_args(Policy):
        raise ForetellError(f"Unknown teaching policy {policy!r}. Use one of {', '.join(get_args(Policy))}.")
    candidates = torch.cat([of_target, of_alternative])
    normal = torch.randn(draws, generator=generator, dtype=torch.float64) if draws else None
    scorer = Scorer(prior, features[candidates], image, classes, weight=weight, normal=normal)
    drawn = _draw_sets(len(of_target), len(of_alternative), sets, generator)
    found = _ScoredSets(drawn, scorer.score(drawn, halves(2 * PER_CATEGORY)))
    curve = _curve(found.probabilities)
    best, scored = float(found.probabilities.max()), len(drawn)
    if policy == "greedy":
        chosen, probability, curve = _Exchange(scorer, len(of_target), len(candidates)).run()
        best, scored = max(best, probability), scored + curve[-1][0]
    else:
        index = _select(found, policy, threshold)
        if index is None:
            return Search(None, best, scored)
        chosen, probability = drawn[index], float(found.probabilities[index])
    rank = float((found.probabilities <= probability + TIE).double().mean())
    gain = _log_odds(probability) - _log_odds(scorer.before)
    indices = tuple(candidates[chosen].tolist())
    return Search(TeachingSet(indices, probability, scorer.before, gain, policy, scored, rank, curve), best, scored)


def _draw_sets(targets: int, alternatives: int, sets: int | None, generator: torch.Generator) -> Tensor:
    """Draw local indices (S, 4): pairs of the first ``targets``, then pairs of those after them."""
    for count in (targets, alternatives):
        if count < PER_CATEGORY:
            raise ForetellError(
                f"The pool has {count} usable images of a category; a teaching set needs {PER_CATEGORY}. "
                "Add images to the pool or drop the category."
            )
    first, second = (torch.combinations(torch.arange(count), PER_CATEGORY) for count in (targets, alternatives))
    total = len(first) * len(second)
    if total <= MOST:
        places = torch.randperm(total, generator=generator)[:sets]
    elif sets is not None:
        places = torch.randint(total, (sets,), generator=generator)
    else:
        raise ForetellError(
            f"The pool gives {total:,} teaching sets for one target, more than {MOST:,}: score a number of them, or "
            "use policy 'greedy'."
        )
    return torch.cat([first[places // len(second)], targets + second[places % len(second)]], 1)


def _select(found: _ScoredSets, policy: Policy, threshold: float) -> int | None:
    if policy == "random":
        return 0
    if policy == "first":
        above = torch.nonzero(found.probabilities > threshold)
        return int(above[0]) if len(above) else None
    return found.extreme(1 if policy == "best" else -1)


class _Exchange:
    """The greedy policy: a set built up by turns from each category, then improved by exchanging one image at a time.

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

    def run(self) -> tuple[Tensor, float, tuple[tuple[int, float], ...]]:
        """Return the set that no exchange of one image makes better, its probability, and its curve."""
        for place in range(len(self.sides)):
            image, self.probability = self._best(place)
            self.chosen.append(image)
        curve = [(self.scored, self.probability)]
        while self._sweep():
            curve.append((self.scored, self.probability))
        curve.append((self.scored, self.probability))
        return torch.tensor(sorted(self.chosen[::2]) + sorted(self.chosen[1::2])), self.probability, tuple(curve)

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
        found = _ScoredSets(trials, self.scorer.score(trials, labels))
        self.scored += len(free)
        index = found.extreme(1)
        return int(free[index]), float(found.probabilities[index])


def _curve(probabilities: Tensor) -> tuple[tuple[int, float], ...]:
    """Return the best probability after 1, 2, 4, ... and all sets scored."""
    running = probabilities.cummax(0).values
    counts = [2**k for k in range((len(running) - 1).bit_length())] + [len(running)]
    return tuple((count, float(running[count - 1])) for count in counts)


def _log_odds(p: float) -> float:
    """Compute log-odds that stay finite where a probability rounds to 0 or 1."""
    return float(torch.logit(torch.tensor(p, dtype=torch.float64), eps=1e-15))
