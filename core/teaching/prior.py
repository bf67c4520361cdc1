"""The learner's prior: a Kronecker-factored Laplace approximation of the classifier's last layer.

Ritter, Botev & Barber 2018 (Kronecker-factored Laplace), as used by Folke et al. 2021.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from core.errors import ForetellError

RANK_TOLERANCE = 1e-10
"""Eigenvalues of U below this share of the largest count as directions the training set never showed."""


def with_bias(features: Tensor) -> Tensor:
    """Features (N, M) with the constant 1 of the bias appended, (N, M + 1), float64."""
    return torch.cat([features.double(), torch.ones(len(features), 1, dtype=torch.float64)], 1)


@dataclass(frozen=True)
class KroneckerPrior:
    """W ~ MN(W*, V^-1, U^-1): what the learner believes of the last layer's weights.

    Attributes
    ----------
    head
        W*, (K, M + 1) with the bias as last column.
    feature_covariance
        U^-1, (M + 1, M + 1), U = sqrt(n) E[z z^T] + sqrt(tau) I + damping * mean diagonal * I.
    class_covariance
        V^+, (K, K), the pseudo-inverse of sqrt(n) E[diag(p) - p p^T] + sqrt(tau) I. At tau = 0 V is singular (the
        all-ones vector), but the learner needs only differences of two rows, which are orthogonal to it: the
        pseudo-inverse is the limit tau -> 0.
    images
        n, the images the prior was estimated from.
    """

    head: Tensor
    feature_covariance: Tensor
    class_covariance: Tensor
    images: int

    def scale(self, target: int, alternative: int) -> float:
        """s = (e_c - e_c')^T V^+ (e_c - e_c'): the prior variance of the two rows' difference along V."""
        v = self.class_covariance
        return float(v[target, target] + v[alternative, alternative] - 2 * v[target, alternative])

    def mean(self, features: Tensor, target: int, alternative: int) -> Tensor:
        """Prior mean (N,) of the log-odds target : alternative for features (N, M)."""
        return with_bias(features) @ (self.head[target] - self.head[alternative])

    def kernel(self, a: Tensor, b: Tensor, target: int, alternative: int) -> Tensor:
        """Prior covariance (N, L) of the log-odds of features a (N, M) and b (L, M): s z^T U^-1 z'."""
        return self.scale(target, alternative) * (with_bias(a) @ self.feature_covariance @ with_bias(b).T)


def fit_prior(head: Tensor, batches: Iterable[Tensor], *, tau: float = 0.0, damping: float = 0.0) -> KroneckerPrior:
    """Estimate the prior from features (N, M) in batches, in one pass, storing none of them.

    Parameters
    ----------
    head
        W* (K, M + 1) as `Classifier.head` gives it.
    tau
        Precision of the isotropic part; 0 is the limit described at `KroneckerPrior`.
    damping
        Added to the diagonal of U as a share of its mean: a stronger prior, and a remedy for dead features.

    Raises
    ------
    ForetellError
        No images, or a feature that is the same for all images and no damping.
    """
    _, width = head.shape
    second = torch.zeros(width, width, dtype=torch.float64)
    fisher = torch.zeros(len(head), len(head), dtype=torch.float64)
    count = 0
    for features in batches:
        z = with_bias(features)
        p = (z @ head.T).softmax(1)
        second += z.T @ z
        fisher += torch.diag(p.sum(0)) - p.T @ p
        count += len(z)
    if not count:
        raise ForetellError("The pool has no images: the learner's prior needs some.")
    u = second / math.sqrt(count)  # sqrt(n) E[z z^T]
    v = fisher / math.sqrt(count)
    u += (math.sqrt(tau) + damping * u.diagonal().mean()) * torch.eye(width, dtype=torch.float64)
    v += math.sqrt(tau) * torch.eye(len(head), dtype=torch.float64)
    return KroneckerPrior(head, _inverse(u), torch.linalg.pinv(v, hermitian=True, rtol=RANK_TOLERANCE), count)


def _inverse(u: Tensor) -> Tensor:
    values, vectors = torch.linalg.eigh(u)
    dead = int((values <= RANK_TOLERANCE * values[-1]).sum())
    if dead:
        raise ForetellError(
            f"{dead} of {len(u)} feature directions never vary over the pool, so the prior says nothing of them. "
            "Give a larger pool or set damping, e.g. damping = 0.001."
        )
    inverse: Tensor = (vectors / values) @ vectors.T
    return inverse
