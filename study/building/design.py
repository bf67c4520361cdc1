"""Which pictures become trials: pure functions of the classifier's answers, the settings and a seed.

Folke et al. 2021 (arXiv:2106.09106), "Experimental design": categories that span the range of accuracy; in each a
standard picture the AI gets right, a standard one it gets wrong and an adversarial one it gets wrong, matched on the
ground truth. A wrong answer's foil is the truth; a right answer's foil is the category most confusable with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from core.errors import ForetellError
from study.building.predictions import Indices, Predictions
from study.bundle import TRIAL_TYPES, TrialType
from study.sources import plain

MIN_POOL_IMAGES = 2

ROLE_OF_TYPE: dict[TrialType, str] = {
    "adv_incorrect": "adversarial",
    "std_incorrect": "standard",
    "std_correct": "standard",
}


@dataclass(frozen=True)
class Candidate:
    """A picture that could be a trial: its set's role, its index there, and the classes involved."""

    trial_type: TrialType
    role: str
    index: int
    truth: int
    target: int
    alternative: int


@dataclass(frozen=True)
class Material:
    """The classifier's answers to the three sets, and its class names."""

    categories: Sequence[str]
    pool: Predictions
    standard: Predictions
    adversarial: Predictions

    def of(self, role: str) -> Predictions:
        """The answers to the set of a role."""
        found: Predictions = getattr(self, role)
        return found

    @cached_property
    def confusion(self) -> Indices:
        """(K, K) counts on the standard set: row true class, column predicted class."""
        return self.standard.confusion(len(self.categories))

    @cached_property
    def accuracy(self) -> NDArray[np.float64]:
        """Per class on the standard set; NaN where it has no picture."""
        with np.errstate(invalid="ignore"):
            ratio: NDArray[np.float64] = np.diag(self.confusion) / self.confusion.sum(1)
        return ratio

    @cached_property
    def teachable(self) -> NDArray[np.bool_]:
        """Per class: does the pool hold enough pictures for a teaching set, ones that the AI too calls by its name?"""
        counts = np.bincount(self.pool.truth[self.pool.correct], minlength=len(self.categories))
        enough: NDArray[np.bool_] = counts >= MIN_POOL_IMAGES
        return enough


def foil(material: Material, target: int) -> int:
    """The category most confusable with ``target``, among those the pool can teach.

    By the confusion matrix of the standard set, both ways; the mean probabilities decide between equal counts (a
    good classifier's matrix is mostly zeros).
    """
    counts = material.confusion
    soft = material.standard.mean_probability
    score = counts[target] + counts[:, target] + 0.5 * (soft[target] + soft[:, target])
    score = np.where(material.teachable, score, -1.0)
    score[target] = -1.0
    return int(score.argmax())


def candidates(material: Material, category: int, trial_type: TrialType) -> list[Candidate]:
    """Every picture of true class ``category`` that fits the trial type and can be taught, in set order."""
    role = ROLE_OF_TYPE[trial_type]
    answers = material.of(role)
    right = trial_type == "std_correct"
    fits = (answers.truth == category) & (answers.correct == right) & material.teachable[answers.predicted]
    other = foil(material, category) if right else category
    return [
        Candidate(trial_type, role, int(i), category, int(answers.predicted[i]), other) for i in np.flatnonzero(fits)
    ]


def complete_categories(material: Material, per_type: int) -> Indices:
    """Classes with at least ``per_type`` candidates of every type, from the least to the most accurate."""
    complete = [
        k
        for k in np.flatnonzero(material.teachable)
        if all(len(candidates(material, int(k), t)) >= per_type for t in TRIAL_TYPES)
    ]
    return np.array(sorted(complete, key=lambda k: (material.accuracy[k], k)), dtype=np.int64)


def chosen_categories(material: Material, wanted: int | Sequence[str], per_type: int) -> list[int]:
    """The study's categories: those named, or ``wanted`` of them evenly spread over the range of accuracy.

    Raises
    ------
    ForetellError
        A name that is no class, or fewer complete categories than wanted: says how many there are and what lacks.
    """
    complete = complete_categories(material, per_type)
    if not isinstance(wanted, int):
        return [_complete(material, name, complete, per_type) for name in wanted]
    if len(complete) < wanted:
        raise ForetellError(
            f"trials.categories = {wanted}, but only {len(complete)} categories have {per_type} picture(s) of every "
            f"type ({_lacking(material, per_type)}). Ask for fewer, or give larger image sets."
        )
    places = np.linspace(0, len(complete) - 1, wanted).round().astype(int)
    return [int(k) for k in complete[places]]


def _complete(material: Material, name: str, complete: Indices, per_type: int) -> int:
    names = [plain(category).casefold() for category in material.categories]
    if plain(name).casefold() not in names:
        raise ForetellError(f"trials.categories names {name!r}, which is no class of the classifier.")
    category = names.index(plain(name).casefold())
    if category not in complete:
        lacking = [t for t in TRIAL_TYPES if len(candidates(material, category, t)) < per_type]
        raise ForetellError(
            f"Category {name!r} has too few pictures of type {', '.join(lacking) or 'any (the pool lacks it)'}. "
            "Choose another, or give larger image sets."
        )
    return category


def _lacking(material: Material, per_type: int) -> str:
    short = {
        t: sum(len(candidates(material, int(k), t)) < per_type for k in np.flatnonzero(material.teachable))
        for t in TRIAL_TYPES
    }
    untaught = [
        plain(material.categories[int(k)]) for k in np.flatnonzero((material.accuracy >= 0) & ~material.teachable)
    ]
    lacking = [f"{count} lack {t}" for t, count in short.items()]
    if untaught:
        lacking.append(
            f"{len(untaught)}, such as {untaught[0]}, have fewer than {MIN_POOL_IMAGES} pool pictures that the AI knows"
        )
    return ", ".join(lacking)


def shuffled(found: Sequence[Candidate], rng: np.random.Generator) -> Iterator[Candidate]:
    """The candidates in a random order."""
    for i in rng.permutation(len(found)):
        yield found[int(i)]
