"""Accuracy of the classifier averaged over the learner's prior, next to the plain one's.

Folke et al. 2021 (arXiv:2106.09106), appendix A, check their prior so: what a learner believes before any example is
about the network only where the two are about as accurate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.classifier import Classifier
from core.decoding import read_batches
from core.teaching.kfac import KroneckerPrior, with_bias
from core.teaching.probabilistic import predict_with_sampled_heads
from data.types import ImageSet
from study.network.sources import UNMATCHED, class_of_labels

AVERAGED = "averaged classifier"
"""Key of a bundle's environment, which is no part of the study hash."""
DRAWS = 30
MOST = 1000
"""Images compared at most: accuracies to about 1.5 points."""
FAR = 0.05
"""Difference of the top-1 accuracies that is warned of."""


@dataclass(frozen=True)
class AveragedAccuracy:
    """Top-1 and top-5 accuracy of the averaged classifier and of the plain one, on ``images``."""

    averaged: tuple[float, float]
    plain: tuple[float, float]
    images: int

    @property
    def text(self) -> str:
        """Both accuracies, and a warning where the averaged one is far lower."""
        numbers = [f"{value:.1%}" for value in (*self.averaged, *self.plain)]
        text = (
            f"Averaged over the prior the classifier is right in {numbers[0]} (top 5: {numbers[1]}), as it is in "
            f"{numbers[2]} (top 5: {numbers[3]}) of {self.images:,} images ({DRAWS} draws)."
        )
        if self.plain[0] - self.averaged[0] <= FAR:
            return text
        return (
            f"{text} Warning: the prior is not that of this network; the learner knows less than the classifier. Learn "
            "the prior from more images, or change the damping."
        )


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
    answers, _ = predict_with_sampled_heads(prior, chosen, DRAWS, torch.Generator().manual_seed(seed))
    plain = with_bias(chosen) @ prior.head.T
    return AveragedAccuracy(_accuracy(answers[:, classes], labels), _accuracy(plain[:, classes], labels), len(rows))


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


def _accuracy(scores: Tensor, labels: Tensor) -> tuple[float, float]:
    """Compute top-1 and top-5 accuracy of scores (N, K)."""
    ranked = scores.topk(min(5, scores.shape[1]), dim=1).indices == labels[:, None]
    return float(ranked[:, 0].double().mean()), float(ranked.any(1).double().mean())
