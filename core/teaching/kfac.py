"""KFAC: a Kronecker-factored Laplace approximation of the classifier's last layer, the learner's prior.

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
CERTAIN = 0.1
"""Share of the least variance that V can leave a class: below it the class's weights count as certain."""
LEAST_SHRINKAGE, MOST_SHRINKAGE = 0.001, 0.999
"""Bounds of the automatic damping's shrinkage: at one U is a multiple of the identity, at none it has no inverse."""


def with_bias(features: Tensor) -> Tensor:
    """Return features (N, M) with the constant 1 of the bias appended, (N, M + 1), float64."""
    return torch.cat([features.double(), torch.ones(len(features), 1, dtype=torch.float64)], 1)


@dataclass(frozen=True)
class KroneckerPrior:
    """W ~ MN(W*, V^-1, U^-1): the learner's prior over the last layer's weights.

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
    conditions
        Condition numbers of U and, on its range, of V: above some 1e8 float64 leaves few digits of the inverse.
    damping
        The damping that was applied: the one given, or the automatic one (`Moments.prior`).
    """

    head: Tensor
    feature_covariance: Tensor
    class_covariance: Tensor
    images: int
    conditions: tuple[float, float]
    damping: float = 0.0

    def scale(self, target: int, alternative: int) -> float:
        """Return s = (e_c - e_c')^T V^+ (e_c - e_c'): the prior variance of the two rows' difference along V."""
        v = self.class_covariance
        return float(v[target, target] + v[alternative, alternative] - 2 * v[target, alternative])

    @property
    def certain(self) -> list[int]:
        """The classes whose weights do not vary, because hardly any image gives them a probability.

        With V of m >= 2 other classes V^+ is at least (1 - 1/m)^2 over V's largest eigenvalue on the diagonal (Cauchy
        and Schwarz), and about 0 for a class in whose direction V vanishes.
        """
        values = torch.linalg.eigvalsh(self.class_covariance)
        if values[-1] <= 0:
            return list(range(len(values)))
        least = values[values > RANK_TOLERANCE * values[-1]].min()
        certain: list[int] = (self.class_covariance.diagonal() < CERTAIN * least).nonzero().flatten().tolist()
        return certain

    def mean(self, features: Tensor, target: int, alternative: int) -> Tensor:
        """Return the prior mean (N,) of the log-odds target : alternative for features (N, M)."""
        return with_bias(features) @ (self.head[target] - self.head[alternative])

    def kernel(self, a: Tensor, b: Tensor, target: int, alternative: int) -> Tensor:
        """Return the prior covariance (N, L) of the log-odds of features a (N, M) and b (L, M): s z^T U^-1 z'."""
        return self.scale(target, alternative) * (with_bias(a) @ self.feature_covariance @ with_bias(b).T)


class Moments:
    """The sums over a training set that a prior is made of, in float64; none of its features is kept.

    Attributes
    ----------
    second, fisher
        Sums of z z^T, (M + 1, M + 1), and of diag(p) - p p^T, (K, K).
    fourth
        Sum of (z^T z)^2, a scalar: how much the single images' z z^T scatter about their mean.
    count
        Images taken in.
    """

    def __init__(self, head: Tensor) -> None:
        self.head = head
        classes, width = head.shape
        self.second = torch.zeros(width, width, dtype=torch.float64)
        self.fisher = torch.zeros(classes, classes, dtype=torch.float64)
        self.fourth = torch.zeros((), dtype=torch.float64)
        self.count = 0

    def add(self, features: Tensor) -> None:
        """Take in features (N, M)."""
        z = with_bias(features)
        if z.shape[1] != self.head.shape[1]:
            raise ForetellError(
                f"The features have {z.shape[1] - 1} columns, but the last layer takes {self.head.shape[1] - 1}: "
                "read both from one classifier."
            )
        p = (z @ self.head.T).softmax(1)
        self.second += z.T @ z
        self.fourth += z.square().sum(1).square().sum()
        self.fisher += torch.diag(p.sum(0)) - p.T @ p
        self.count += len(z)

    def prior(self, *, tau: float = 0.0, damping: float = 0.0) -> KroneckerPrior:
        """Return the prior these sums make, with the parameters and errors of `fit_prior`."""
        if not self.count:
            raise ForetellError("The pool has no images: the learner's prior needs some.")
        u = self.second / math.sqrt(self.count)  # sqrt(n) E[z z^T]
        v = self.fisher / math.sqrt(self.count)
        identity = torch.eye(len(u), dtype=torch.float64)
        scale = u.diagonal().mean()
        u += (math.sqrt(tau) + damping * scale) * identity
        v += math.sqrt(tau) * torch.eye(len(v), dtype=torch.float64)
        if not damping and _dead(torch.linalg.eigvalsh(u)):
            share = self.shrinkage()
            damping = share / (1 - share)
            u += damping * scale * identity
        features, feature_condition = _inverse(u)
        classes, class_condition = _pseudo_inverse(v)
        return KroneckerPrior(self.head, features, classes, self.count, (feature_condition, class_condition), damping)

    def shrinkage(self) -> float:
        """Return the share of the identity that estimates E[z z^T] with the least expected squared error.

        Ledoit & Wolf 2004 (doi:10.1016/S0047-259X(03)00096-4), lemma 3.3 and theorem 3.2, for an uncentred second
        moment: b^2 / d^2 with d^2 = ||S - m I||^2 and b^2 the sampling variance of S, within `LEAST_SHRINKAGE` and
        `MOST_SHRINKAGE`.
        """
        moment = self.second / self.count
        mean = moment.diagonal().mean()
        squared = moment.square().sum()
        distance = float(squared - len(moment) * mean.square())
        scatter = float(self.fourth / self.count - squared) / self.count
        share = scatter / distance if distance > 0 else MOST_SHRINKAGE
        return min(max(share, LEAST_SHRINKAGE), MOST_SHRINKAGE)


def fit_prior(head: Tensor, batches: Iterable[Tensor], *, tau: float = 0.0, damping: float = 0.0) -> KroneckerPrior:
    """Estimate the prior from features (N, M) in batches, in one pass, storing none of them.

    Parameters
    ----------
    head
        W* (K, M + 1) as `Classifier.head` gives it.
    tau
        Precision of the isotropic part; 0 is the limit described at `KroneckerPrior`.
    damping
        Added to the diagonal of U as a share of its mean: a stronger prior. 0: none where the images span all
        directions of the features; elsewhere (fewer images than features, say) U has no inverse, and
        d = share / (1 - share) with the share of `Moments.shrinkage` is added.

    Raises
    ------
    ForetellError
        No images.
    """
    moments = Moments(head)
    for features in batches:
        moments.add(features)
    return moments.prior(tau=tau, damping=damping)


def _dead(values: Tensor) -> bool:
    """Tell whether some direction never varies, by the ascending eigenvalues of U."""
    return bool(values[0] <= RANK_TOLERANCE * values[-1])


def _inverse(u: Tensor) -> tuple[Tensor, float]:
    values, vectors = torch.linalg.eigh(u)
    if _dead(values):
        raise ForetellError(
            "The features' second moment has no inverse with this damping, so the prior is undefined. Set a larger "
            "damping, e.g. damping = 0.001, or 0 for the automatic one."
        )
    return (vectors / values) @ vectors.T, float(values[-1] / values[0])


def _pseudo_inverse(v: Tensor) -> tuple[Tensor, float]:
    values, vectors = torch.linalg.eigh(v)
    live = values > RANK_TOLERANCE * values[-1]
    seen, basis = values[live], vectors[:, live]
    return (basis / seen) @ basis.T, float(seen[-1] / seen[0])
