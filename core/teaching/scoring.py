"""Scores of teaching sets for one target image: the learner's probability, thousands of sets at a time."""

from __future__ import annotations

import torch
from torch import Tensor

from core.teaching.kfac import KroneckerPrior, with_bias
from core.teaching.learner import LearnerPrediction, compute_expected_sigmoid, learn

ENTRIES = 2**16
"""Entries of all kernels of a batch: 4,096 sets of four examples."""


class Scorer:
    """P_learner(Y = target | D, x) of sets D of candidate images, for one target image x.

    Parameters
    ----------
    features
        Of the candidates (N, M), or of augmented copies of each (N, C, M): the paper's 128 epochs show every example
        128 times, each time transformed.
    image
        The target image's features (M,).
    classes
        (target, alternative) class indices.
    weight
        How often each example enters the likelihood; its copies share it equally.
    normal
        Standard normal draws: probabilities by Monte Carlo, as in the paper. None integrates.
    """

    def __init__(
        self,
        prior: KroneckerPrior,
        features: Tensor,
        image: Tensor,
        classes: tuple[int, int],
        *,
        weight: float,
        normal: Tensor | None = None,
    ) -> None:
        copies = features if features.ndim == 3 else features[:, None]
        flat = copies.flatten(0, 1)
        self.copies, self.weight, self.normal = copies.shape[1], weight / copies.shape[1], normal
        self.means = prior.mean(flat, *classes).view(copies.shape[:2])
        self.cross = prior.kernel(flat, image[None], *classes).view(copies.shape[:2])
        self.at_mean = float(prior.mean(image[None], *classes))
        self.at_variance = float(prior.kernel(image[None], image[None], *classes))
        self._gram = prior.kernel(flat, flat, *classes) if self.copies == 1 else None
        if self._gram is None:
            root = torch.linalg.cholesky(prior.scale(*classes) * prior.feature_covariance)
            self._whitened = (with_bias(flat) @ root).view(*copies.shape[:2], -1)

    @property
    def before(self) -> float:
        """The probability before any example."""
        moments = (torch.tensor([value], dtype=torch.float64) for value in (self.at_mean, self.at_variance))
        return float(compute_expected_sigmoid(*moments))

    def score(self, sets: Tensor, labels: Tensor) -> Tensor:
        """Return probabilities (S,) float64 of sets (S, n) of candidates with labels (n,): 1 target, 0 alternative."""
        size = max(1, ENTRIES // (len(labels) * self.copies) ** 2)
        return torch.cat([self.predict_after(part, labels).probability for part in torch.split(sets, size)])

    def predict_after(self, sets: Tensor, labels: Tensor) -> LearnerPrediction:
        """Predict the target image as the learner does after each of a few sets (S, n), all at once."""
        means, cross = (values[sets].flatten(1) for values in (self.means, self.cross))
        return learn(
            self._kernel(sets),
            means,
            labels.repeat_interleave(self.copies),
            cross,
            self.at_mean,
            self.at_variance,
            weight=self.weight,
            normal=self.normal,
        )

    def _kernel(self, part: Tensor) -> Tensor:
        """Compute kernels (S, n C, n C), for single copies from one Gram matrix: with copies it would not fit."""
        if self._gram is not None:
            return self._gram[part[:, :, None], part[:, None, :]]
        z = self._whitened[part].flatten(1, 2)
        kernel: Tensor = z @ z.mT
        return kernel


def halves(size: int) -> Tensor:
    """Return labels (size,): the first half are the target's, the rest the alternative's."""
    return (torch.arange(size) < size // 2).double()


def score_sets(
    prior: KroneckerPrior,
    features: Tensor,
    sets: Tensor,
    image: Tensor,
    classes: tuple[int, int],
    *,
    weight: float,
) -> Tensor:
    """Score sets (S, 4) of pool indices, the target's examples first: P_learner(Y = target | D, x), (S,) float64."""
    used, local = torch.unique(sets, return_inverse=True)
    return Scorer(prior, features[used], image, classes, weight=weight).score(local, halves(sets.shape[1]))
