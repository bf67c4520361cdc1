"""Policies that choose among randomly drawn sets by the learner's probability of the network's prediction."""

from __future__ import annotations

import torch

from core.teaching.policies.policy import ChosenExamples, Policy, TeachingQuery


def choose_first(query: TeachingQuery) -> ChosenExamples | None:
    """Take the first set drawn after which the learner's probability exceeds the threshold (arXiv:2106.09106)."""
    above = torch.nonzero(query.drawn.probabilities > query.threshold)
    return ChosenExamples(query.drawn.sets[int(above[0])]) if len(above) else None


def choose_best(query: TeachingQuery) -> ChosenExamples:
    """Take the set with the highest probability of those drawn."""
    return ChosenExamples(query.drawn.sets[query.drawn.extreme(1)])


def choose_random(query: TeachingQuery) -> ChosenExamples:
    """Take the first set drawn: a control."""
    return ChosenExamples(query.drawn.sets[0])


def choose_unhelpful(query: TeachingQuery) -> ChosenExamples:
    """Take the set with the lowest probability of those drawn."""
    return ChosenExamples(query.drawn.sets[query.drawn.extreme(-1)])


FIRST = Policy(choose_first, "the first set drawn after which P exceeds {threshold:.0%}", of_drawn=True)
BEST = Policy(choose_best, "the highest P among the {scored:,} sets that were drawn and scored", of_drawn=True)
RANDOM = Policy(choose_random, "the first set drawn, whatever its P", of_drawn=True)
UNHELPFUL = Policy(choose_unhelpful, "the lowest P among the {scored:,} sets that were drawn and scored", of_drawn=True)
