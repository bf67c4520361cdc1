"""Bayesian teaching by examples: sets of four images from which the learner infers the classifier's prediction."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from core.errors import ForetellError
from core.teaching.kfac import KroneckerPrior
from core.teaching.policies import POLICIES
from core.teaching.policies.policy import PER_CATEGORY, TIE, ChosenExamples, ScoredSets, TeachingQuery
from core.teaching.scoring import Scorer, halves
from core.types import TeachingSet

MOST = 10_000_000
"""Teaching sets up to which all are enumerated: some 80 images of each category."""


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


def choose_examples(
    prior: KroneckerPrior,
    features: Tensor,
    of_target: Tensor,
    of_alternative: Tensor,
    image: Tensor,
    classes: tuple[int, int],
    *,
    generator: torch.Generator,
    policy: str = "first",
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
        A name in `core.teaching.policies.POLICIES`. Whatever it is, random sets are scored too: the set's rank is
        among them.
    sets
        How many random sets to score, no two alike; None, or more than there are: all, in random order.
    weight
        How often each example enters the likelihood.
    draws
        Probabilities by so many Monte Carlo draws, as in the paper; 0 integrates.
    """
    choose = POLICIES[policy].choose
    candidates = torch.cat([of_target, of_alternative])
    usable = features[candidates]
    normal = torch.randn(draws, generator=generator, dtype=torch.float64) if draws else None
    scorer = Scorer(prior, usable, image, classes, weight=weight, normal=normal)
    sets_drawn = _draw_sets(len(of_target), len(of_alternative), sets, generator)
    drawn = ScoredSets(sets_drawn, scorer.score(sets_drawn, halves(2 * PER_CATEGORY)))
    best, scored = float(drawn.probabilities.max()), len(sets_drawn)
    chosen = choose(TeachingQuery(prior, usable, len(of_target), image, classes, scorer, drawn, threshold))
    if chosen is None:
        return Search(None, best, scored)
    probability = _probability(chosen, drawn, scorer)
    best, scored = max(best, probability), scored + chosen.scored
    curve = chosen.curve or _curve(drawn.probabilities)
    rank = float((drawn.probabilities <= probability + TIE).double().mean())
    gain = _log_odds(probability) - _log_odds(scorer.before)
    indices = tuple(candidates[chosen.members].tolist())
    others = drawn.probabilities[(drawn.sets != chosen.members).any(1)]
    counts = (
        len(others),
        int((others > probability + TIE).sum()),
        int(((others - probability).abs() <= TIE).sum()),
    )
    teaching_set = TeachingSet(indices, probability, scorer.before, gain, policy, scored, rank, curve, *counts)
    return Search(teaching_set, best, scored)


def _probability(chosen: ChosenExamples, drawn: ScoredSets, scorer: Scorer) -> float:
    """Return the learner's probability after the chosen set, as it was scored, or scored now."""
    if chosen.probability is not None:
        return chosen.probability
    places = torch.nonzero((drawn.sets == chosen.members).all(1))
    if len(places):
        return float(drawn.probabilities[places[0]])
    return float(scorer.score(chosen.members[None], halves(2 * PER_CATEGORY)))


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


def _curve(probabilities: Tensor) -> tuple[tuple[int, float], ...]:
    """Return the best probability after 1, 2, 4, ... and all sets scored."""
    running = probabilities.cummax(0).values
    counts = [2**k for k in range((len(running) - 1).bit_length())] + [len(running)]
    return tuple((count, float(running[count - 1])) for count in counts)


def _log_odds(p: float) -> float:
    """Compute log-odds that stay finite where a probability rounds to 0 or 1."""
    return float(torch.logit(torch.tensor(p, dtype=torch.float64), eps=1e-15))
