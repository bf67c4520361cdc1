"""Accuracy of the classifier whose last layer is sampled from the learner's prior, next to the plain one's.

Folke et al. 2021 (arXiv:2106.09106), appendix A, check their prior so: what a learner believes before any example is
about the network only where the two are about as accurate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.network.classifier import Classifier
from core.network.decoding import read_batches
from core.shares import Z, compare_paired
from core.teaching.kfac import KroneckerPrior, with_bias
from core.teaching.probabilistic import RANKS, measure_sampled_accuracy, rank_of_label
from data.types import ImageSet
from study.analysis.words.cells import write_rounded
from study.network.sources import UNMATCHED, class_of_labels

AVERAGED = "averaged classifier"
"""Key of a bundle's environment, which is no part of the study hash."""
WARNING = "Warning:"
DRAWS = 1000
"""An average over few draws is less accurate than the posterior predictive, and warned of priors that are good."""
MOST = 1000
"""Images compared at most: accuracies to about 1.5 points."""
FAR = 0.05
"""Difference of the top-1 accuracies that is warned of, where its interval excludes 0."""
LEAST_DAMPING = 0.01
"""The least damping that the warning suggests."""


@dataclass(frozen=True)
class AveragedAccuracy:
    """Top-1 and top-5 accuracy of the sampled classifier and of the plain one, on the same ``images``.

    Attributes
    ----------
    averaged, error
        Of predictions averaged over `DRAWS` draws from the prior, with their Monte Carlo standard errors.
    plain
        Of the network itself.
    lost, won
        Images that only the plain one, and only the sampled one predicts correctly (top 1).
    damping
        Of the prior.
    """

    averaged: tuple[float, float]
    error: tuple[float, float]
    plain: tuple[float, float]
    lost: int
    won: int
    images: int
    damping: float = 0.0

    @property
    def gap(self) -> tuple[float, float, float]:
        """Top-1 accuracy that sampling loses, and its 95% interval, over images and draws from the prior.

        The two sources are independent, so their variances add up: the paired interval given the draws, widened.
        """
        value, low, high, _ = compare_paired(self.lost, self.won, self.images)
        draws = Z * self.error[0]
        return value, value - math.hypot(value - low, draws), value + math.hypot(high - value, draws)

    @property
    def is_far(self) -> bool:
        """Whether the two differ by at least `FAR`, and by more than chance."""
        gap, low, high = self.gap
        return abs(gap) >= FAR and (low > 0 or high < 0)

    @property
    def text(self) -> str:
        """Both accuracies, and a warning where they are far from each other."""
        return f"{self.facts} {WARNING} {self.warning}" if self.warning else self.facts

    @property
    def facts(self) -> str:
        """Both accuracies, and their difference with its interval."""
        plain, fifth, learner, learner_fifth = (f"{value:.1%}" for value in (*self.plain, *self.averaged))
        return (
            f"Among the classes of these {self.images:,} images, the network is correct on {plain} of them (top 5: "
            f"{fifth}), and the learner, which has only its prior before it sees any example, on {learner} (top 5: "
            f"{learner_fifth}): {self._distance} (95% interval {self._interval}; it covers the choice of images and of "
            f"{DRAWS:,} draws from the prior)."
        )

    @property
    def summary(self) -> str:
        """The top-1 accuracies and their difference: what `facts` begins with."""
        plain, learner = f"{self.plain[0]:.1%}", f"{self.averaged[0]:.1%}"
        return f"{learner} correct, the network {plain}: {self._distance} (95% interval {self._interval})."

    @property
    def warning(self) -> str:
        """What follows from accuracies that are far from each other, and a remedy; empty where they are not."""
        if not self.is_far:
            return ""
        well = "less well" if self.lost > self.won else "better"
        tried = max(10 * self.damping, LEAST_DAMPING)
        return (
            f"The learner's accuracy is {self._distance} than the network's, so examples are chosen for a learner that "
            f"knows these classes {well}. To bring the two together, increase the damping of the prior (now "
            f"{self.damping:.3g}; try {tried:.3g}), or estimate the prior from more images."
        )

    @property
    def _interval(self) -> str:
        _, low, high = self.gap
        limits = (low, high) if self.lost >= self.won else (-high, -low)
        return " to ".join(write_rounded(100 * limit, 1) for limit in limits)

    @property
    def _distance(self) -> str:
        """The difference of the accuracies as they are written, so that a reader's own subtraction gives the same."""
        plain, learner = (float(f"{100 * value:.1f}") for value in (self.plain[0], self.averaged[0]))
        if plain == learner:
            return "a difference of 0.0 percentage points"
        return f"{abs(plain - learner):.1f} percentage points {'lower' if plain > learner else 'higher'}"


def compare(prior: KroneckerPrior, features: Tensor, truth: NDArray[np.int64], seed: int) -> AveragedAccuracy | None:
    """Compare both on images with these features (N, M) and true classes (N,), -1 where not known; None without any.

    Only the classes of these images compete: a class without any has a prior that says nothing, and is no option of a
    trial either.
    """
    rows = np.flatnonzero(truth != UNMATCHED)
    rows = rows[np.unique(np.linspace(0, max(len(rows) - 1, 0), MOST).astype(int))] if len(rows) else rows
    if not len(rows) or not features.shape[1]:
        return None
    chosen = features[torch.from_numpy(rows)].double()
    classes, labels = torch.unique(torch.from_numpy(truth[rows]), return_inverse=True)
    sampled = measure_sampled_accuracy(
        prior, chosen, labels, classes, samples=DRAWS, generator=torch.Generator().manual_seed(seed)
    )
    ranks = rank_of_label((with_bias(chosen) @ prior.head.T)[:, classes], labels)
    first, fifth = (float((ranks < rank).double().mean()) for rank in RANKS)
    right = ranks < 1
    lost, won = int((right & ~sampled.correct).sum()), int((sampled.correct & ~right).sum())
    return AveragedAccuracy(sampled.accuracy, sampled.error, (first, fifth), lost, won, len(rows), prior.damping)


def compare_on(
    classifier: Classifier, images: ImageSet, prior: KroneckerPrior, seed: int = 0
) -> AveragedAccuracy | None:
    """Compare both on images spread over a set."""
    truth = class_of_labels(images, classifier, refuse=False)
    spread = np.unique(np.linspace(0, len(images) - 1, MOST).astype(int))
    chosen = images.only(spread.tolist())
    parts = read_batches(classifier, chosen.open, 0, len(chosen))
    features = torch.cat([classifier.features(part) for part in parts])
    return compare(prior, features, truth[spread], seed)
