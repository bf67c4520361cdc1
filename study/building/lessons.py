"""One trial's lesson laid open: the pool as the learner sees it, the sets of each policy, and learning step by step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from core.errors import ForetellError
from core.teaching.policies import POLICIES
from core.teaching.scoring import Scorer
from core.types import TeachingSet
from study.building.candidates import Candidate
from study.building.plan import Planner, TeachingProblem


@dataclass(frozen=True)
class Belief:
    """The learner's log-odds of the target category for the target image, and the probability they imply."""

    examples: tuple[str, ...]
    mean: float
    sd: float
    probability: float


@dataclass(frozen=True)
class Lesson:
    """A trial's teaching, as a page shows it.

    Attributes
    ----------
    ids
        Of the N possible examples, those of the target category first; ``targets`` is their number.
    places
        (N + 1, 2): the examples and, last, the target image on the two main axes of the learner's prior covariance;
        images that are close teach alike. ``explained`` is the share of the variance these axes account for.
    log_odds
        (N + 1,) prior means: what the classifier itself says.
    sets
        The teaching set of each policy, of indices into ``ids``; without ``first`` where none is above the threshold.
    beliefs
        Of each policy's set: the learner before any example and after each one more, in turns from both categories.
    """

    ids: tuple[str, ...]
    targets: int
    places: Tensor
    explained: float
    log_odds: Tensor
    sets: dict[str, TeachingSet]
    beliefs: dict[str, tuple[Belief, ...]]


def lesson(planner: Planner, candidate: Candidate) -> Lesson:
    """Return the lesson of one target image, by the study's own settings and draws.

    Raises
    ------
    ForetellError
        The pool cannot teach it.
    """
    question = planner.question(candidate)
    if isinstance(question, str):
        raise ForetellError(f"There is no lesson: {question}.")
    teaching = planner.config.teaching
    searches = {policy: planner.search(question, teaching.model_copy(update={"policy": policy})) for policy in POLICIES}
    sets = {policy: search.chosen for policy, search in searches.items() if search.chosen is not None}
    ids = tuple(planner.sets["pool"].ids[i] for i in question.pool.tolist())
    places, explained = _places(planner, question)
    classes = (candidate.target, candidate.alternative)
    shown = torch.cat([planner.material.pool.features[question.pool], question.image[None]])
    scorer = Scorer(
        planner.prior, planner.pool.features(question.pool), question.image, classes, weight=teaching.weight
    )
    beliefs = {policy: _steps(scorer, chosen, ids) for policy, chosen in sets.items()}
    return Lesson(ids, question.targets, places, explained, planner.prior.mean(shown, *classes), sets, beliefs)


def _steps(scorer: Scorer, chosen: TeachingSet, ids: tuple[str, ...]) -> tuple[Belief, ...]:
    half = len(chosen.indices) // 2
    turns = [k for pair in zip(range(half), range(half, 2 * half), strict=True) for k in pair]
    members = [chosen.indices[k] for k in turns]
    labels = torch.tensor([1.0 if k < half else 0.0 for k in turns], dtype=torch.float64)
    beliefs = [Belief((), scorer.at_mean, scorer.at_variance**0.5, scorer.before)]
    for count in range(1, len(members) + 1):
        belief = scorer.predict_after(torch.tensor([members[:count]]), labels[:count])
        moments = float(belief.mean), float(belief.variance) ** 0.5, float(belief.probability)
        beliefs.append(Belief(tuple(ids[i] for i in members[:count]), *moments))
    return tuple(beliefs)


def _places(planner: Planner, question: TeachingProblem) -> tuple[Tensor, float]:
    """Return the kernel principal components of the prior covariance between all images of the question."""
    candidate = question.candidate
    shown = torch.cat([planner.material.pool.features[question.pool], question.image[None]])
    gram = planner.prior.kernel(shown, shown, candidate.target, candidate.alternative)
    centred = gram - gram.mean(0) - gram.mean(1, keepdim=True) + gram.mean()
    values, vectors = torch.linalg.eigh(centred)
    values = values.clamp(min=0)
    axes = vectors[:, -2:].flip(1) * values[-2:].flip(0).sqrt()
    return axes, float(values[-2:].sum() / values.sum())
