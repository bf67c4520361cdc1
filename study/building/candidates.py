"""Selection of trial images: pure functions of the classifier's predictions, the settings and a seed.

Folke et al. 2021 (arXiv:2106.09106), "Experimental design": categories that span the range of accuracy; in each a
standard image the AI gets right, a standard one it gets wrong and an adversarial one it gets wrong, matched on the
ground truth. The foil of an error is the truth; that of a correct prediction is the category most confusable with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from study.bundle import TrialType
from study.network.predictions import Indices, Predictions

MIN_POOL_IMAGES = 2

ROLE_OF_TYPE: dict[str, str] = {
    "adv_incorrect": "adversarial",
    "std_incorrect": "standard",
    "std_correct": "standard",
}


@dataclass(frozen=True)
class Candidate:
    """An image that could be a trial: its set's role, its index there, and the classes involved.

    ``others`` are the foils after the first one, where a trial has more than two options.
    """

    trial_type: TrialType
    role: str
    index: int
    truth: int
    target: int
    alternative: int
    others: tuple[int, ...] = ()


@dataclass(frozen=True)
class SetPredictions:
    """The network's predictions for the three sets, and its class names.

    ``one_way`` counts as confusion only the images of a category that are taken for another, not the reverse;
    ``options`` is how many classes a trial has to choose from.
    """

    categories: Sequence[str]
    pool: Predictions
    standard: Predictions
    adversarial: Predictions
    one_way: bool = False
    options: int = 2

    def of(self, role: str) -> Predictions:
        """Return the predictions for the set of a role."""
        predictions: Predictions = getattr(self, role)
        return predictions

    @cached_property
    def confusion(self) -> Indices:
        """(K, K) counts on the standard set: row true class, column predicted class."""
        return self.standard.confusion(len(self.categories))

    @cached_property
    def accuracy(self) -> NDArray[np.float64]:
        """Per class on the standard set; NaN where it has no image."""
        with np.errstate(invalid="ignore"):
            ratio: NDArray[np.float64] = np.diag(self.confusion) / self.confusion.sum(1)
        return ratio

    @cached_property
    def teachable(self) -> NDArray[np.bool_]:
        """Per class: does the pool hold enough images for a teaching set, ones that the AI too calls by its name?"""
        counts = np.bincount(self.pool.truth[self.pool.correct], minlength=len(self.categories))
        enough: NDArray[np.bool_] = counts >= MIN_POOL_IMAGES
        return enough


def foil(material: SetPredictions, target: int) -> int:
    """Return the category most confusable with ``target``, among those the pool can teach.

    By the confusion matrix of the standard set, both ways or one (`Material.one_way`); the mean probabilities decide
    between equal counts (a good classifier's matrix is mostly zeros).
    """
    return int(_score_foils(material, target).argmax())


def list_further_foils(material: SetPredictions, target: int, first: int) -> tuple[int, ...]:
    """List the foils after the ``first``: the most confusable with ``target`` by the order of `foil`, then by index."""
    ranked = np.argsort(-_score_foils(material, target), kind="stable")
    return tuple(int(k) for k in ranked if k not in (target, first))[: material.options - 2]


def _score_foils(material: SetPredictions, target: int) -> NDArray[np.float64]:
    """Score how confusable each class is with ``target``; -1 for itself and those that the pool cannot teach."""
    counts = material.confusion
    soft = material.standard.mean_probability
    score = counts[target] + 0.5 * soft[target]
    if not material.one_way:
        score = score + counts[:, target] + 0.5 * soft[:, target]
    score = np.where(material.teachable, score, -1.0)
    score[target] = -1.0
    scores: NDArray[np.float64] = score
    return scores


def suitable(material: SetPredictions, trial_type: TrialType) -> NDArray[np.bool_]:
    """Return, for each image of the type's set, whether it can be a trial once its own category can be taught.

    The network is right or wrong as the type demands, the label is one of its classes, and the other options can be
    taught.
    """
    predictions = material.of(ROLE_OF_TYPE[trial_type])
    teachable, truth = material.teachable, predictions.truth
    right = trial_type == "std_correct"
    others = teachable.sum() - teachable[truth] >= material.options - 1
    others &= right | teachable[predictions.predicted]
    fits: NDArray[np.bool_] = (truth >= 0) & (predictions.correct == right) & others
    return fits


def candidates(material: SetPredictions, category: int, trial_type: TrialType) -> list[Candidate]:
    """Return every image of true class ``category`` that can be a trial of the type, in set order."""
    role = ROLE_OF_TYPE[trial_type]
    predictions = material.of(role)
    fits = suitable(material, trial_type) & (predictions.truth == category) & material.teachable[category]
    other = foil(material, category) if trial_type == "std_correct" else category
    predicted = predictions.predicted[fits].tolist()
    further = {target: list_further_foils(material, target, other) for target in {*predicted}}
    return [
        Candidate(trial_type, role, int(i), category, target, other, further[target])
        for i, target in zip(np.flatnonzero(fits), predicted, strict=True)
    ]


def shuffle_candidates(in_order: Sequence[Candidate], rng: np.random.Generator) -> Iterator[Candidate]:
    """Return the candidates in a random order."""
    for i in rng.permutation(len(in_order)):
        yield in_order[int(i)]
