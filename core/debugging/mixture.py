"""An error-aware mixture: images grouped by features, label and prediction, fitted by EM.

Domino's model (Eyuboglu et al. 2022, arXiv:2203.14960, section 4.2): in group s the features are normal with a diagonal
covariance, and labels and predictions are categorical. With q the responsibilities, each step raises the free energy
F(q) = E_q[log p(x, s)] + H(q), which equals the log-likelihood when q is the posterior (Neal & Hinton 1998).

scikit-learn's `GaussianMixture` is the case gamma = 0: it has no categorical part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2
from scipy.special import logsumexp, xlogy

Floats = NDArray[np.float64]
SMOOTH = 0.01
"""Pseudo-counts of each class in each group: a class that a group lacks stays possible."""
FLOOR = 1e-6
"""Least variance of a feature in a group, as a share of its variance among all images."""
STEPS, TOLERANCE = 200, 1e-6


@dataclass(frozen=True)
class MixtureData:
    """What the mixture is fitted to: features (N, M), one-hot labels (N, K), predicted probabilities (N, K)."""

    features: Floats
    labels: Floats
    predicted: Floats


@dataclass(frozen=True)
class ErrorMixture:
    """A fitted mixture of S groups.

    Attributes
    ----------
    weights
        (S,) shares of the groups.
    means, variances
        (S, M) of the features.
    labels, predicted
        (S, K) probabilities of each label and of each predicted class.
    gamma
        Weight of labels and predictions against the features; 0: a plain Gaussian mixture.
    energies
        Free energy after each step, with the prior of the pseudo-counts; never falling.
    """

    weights: Floats
    means: Floats
    variances: Floats
    labels: Floats
    predicted: Floats
    gamma: float
    energies: tuple[float, ...] = ()

    def log_joint(self, seen: MixtureData) -> Floats:
        """Compute log p(x, s) of every image and group, (N, S)."""
        classes = seen.labels @ np.log(self.labels).T + seen.predicted @ np.log(self.predicted).T
        return self.log_features(seen.features) + self.gamma * classes

    def log_features(self, features: Floats) -> Floats:
        """Compute log p(z, s) of the features (N, M) alone, (N, S)."""
        scale = 1 / self.variances
        squares = features**2 @ scale.T - 2 * features @ (self.means * scale).T + (self.means**2 * scale).sum(1)
        constant = np.log(2 * np.pi * self.variances).sum(1)
        return np.asarray(np.log(self.weights) - 0.5 * (squares + constant))

    def assign(self, features: Floats) -> Floats:
        """Compute the probability (N, S) of each group given the features alone."""
        return normalise(self.log_features(features))


def normalise(log_joint: Floats) -> Floats:
    """Turn log p(x, s) (N, S) into the posterior p(s given x)."""
    return np.asarray(np.exp(log_joint - logsumexp(log_joint, axis=1, keepdims=True)))


def fit_mixture(seen: MixtureData, groups: int, *, gamma: float, seed: int, starts: int = 4) -> ErrorMixture:
    """Fit the mixture by EM from several starts (k-means of everything observed), and keep the best by free energy."""
    fits = [_fit(seen, _start(seen, groups, gamma, seed + k), gamma) for k in range(starts)]
    return max(fits, key=lambda one: one.energies[-1])


def free_energy(mixture: ErrorMixture, seen: MixtureData, q: Floats) -> float:
    """Compute F(q) = E_q[log p(x, s)] + H(q), with the log prior of the pseudo-counts."""
    prior = SMOOTH * float(np.log(mixture.labels).sum() + np.log(mixture.predicted).sum())
    return float((q * mixture.log_joint(seen)).sum() - xlogy(q, q).sum()) + prior


def maximise(seen: MixtureData, q: Floats, gamma: float) -> ErrorMixture:
    """Maximise the free energy over the parameters, given responsibilities (N, S)."""
    total = q.sum(0) + np.finfo(float).tiny
    means = (q.T @ seen.features) / total[:, None]
    spread = (q.T @ seen.features**2) / total[:, None] - means**2
    least = FLOOR * seen.features.var(0) + np.finfo(float).eps
    shares = [gamma * (q.T @ one) + SMOOTH for one in (seen.labels, seen.predicted)]
    labels, predicted = (one / one.sum(1, keepdims=True) for one in shares)
    return ErrorMixture(total / total.sum(), means, np.maximum(spread, least), labels, predicted, gamma)


def _fit(seen: MixtureData, q: Floats, gamma: float) -> ErrorMixture:
    energies: list[float] = []
    for _ in range(STEPS):
        mixture = maximise(seen, q, gamma)
        q = normalise(mixture.log_joint(seen))
        energies.append(free_energy(mixture, seen, q))
        if len(energies) > 1 and energies[-1] - energies[-2] < TOLERANCE * abs(energies[-2]):
            break
    return ErrorMixture(
        mixture.weights, mixture.means, mixture.variances, mixture.labels, mixture.predicted, gamma, tuple(energies)
    )


def _start(seen: MixtureData, groups: int, gamma: float, seed: int) -> Floats:
    """Return hard responsibilities (N, S) from k-means of standardised features, labels and predictions."""
    spread = np.maximum(seen.features.std(0), np.finfo(float).eps) * np.sqrt(seen.features.shape[1])
    classes = [gamma**0.5 * one for one in (seen.labels, seen.predicted)] if gamma else []
    rows = np.hstack([seen.features / spread, *classes])
    _, groups_of_rows = kmeans2(rows, groups, minit="++", rng=np.random.default_rng(seed))
    return np.asarray(np.eye(groups)[groups_of_rows])
