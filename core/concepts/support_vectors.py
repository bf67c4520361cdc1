"""Support vector machines on a kernel, one class against the rest.

Cortes & Vapnik 1995, Support-vector networks (doi:10.1007/BF00994018), with the squared hinge loss, which Newton's
method solves exactly: Chapelle 2007, Training a support vector machine in the primal (doi:10.1162/neco.2007.19.5.1155).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import ForetellError

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
STEPS = 200
"""Newton steps, of which some ten are needed."""
PENALTIES = (0.1, 1.0, 10.0, 100.0)
"""Penalties for an image on the wrong side of the margin, C, among which folds choose."""
FOLDS = 3


@dataclass(frozen=True)
class SupportVectors:
    """Coefficients (N, L) of the N training images for each of L classes; 0 where an image is beyond the margin."""

    coefficients: Floats

    def decide(self, kernel: Floats) -> Floats:
        """Compute the decision values (M, L) from the kernel (M, N) of other images with the training images."""
        values: Floats = (kernel + 1) @ self.coefficients
        return values


def fit_support_vectors(kernel: Floats, labels: Labels, classes: int, penalty: float) -> SupportVectors:
    """Fit a machine for each class, from the kernel (N, N) of training images with labels (N,) in 0, ..., classes - 1.

    Each minimises |w|^2 / 2 + C sum max(0, 1 - y f(x))^2, where f has a bias that is part of w (the 1 that is added to
    the kernel).
    """
    columns = [_fit_one(kernel + 1, np.where(labels == own, 1.0, -1.0), penalty) for own in range(classes)]
    return SupportVectors(np.stack(columns, 1))


def _fit_one(kernel: Floats, signs: Floats, penalty: float) -> Floats:
    """Fit f = kernel b to signs (N,) of 1 and -1 by Newton steps, each to the minimum if the support vectors stay."""
    b = np.zeros(len(signs))
    for _ in range(STEPS):
        inside = signs * (kernel @ b) < 1
        aim = np.zeros(len(signs))
        system = kernel[np.ix_(inside, inside)] + np.eye(int(inside.sum())) / (2 * penalty)
        aim[inside] = np.linalg.solve(system, signs[inside])
        if np.array_equal(signs * (kernel @ aim) < 1, inside):
            return aim
        b = _step(kernel, signs, penalty, b, aim)
    raise ForetellError("A support vector machine did not converge. Choose another random seed, or more images.")


def _step(kernel: Floats, signs: Floats, penalty: float, b: Floats, aim: Floats) -> Floats:
    """Go from b towards its aim, half as far until the cost falls."""

    def cost(at: Floats) -> float:
        values = kernel @ at
        return float(at @ values / 2 + penalty * (np.maximum(0, 1 - signs * values) ** 2).sum())

    far, before = 1.0, cost(b)
    while cost(b + far * (aim - b)) > before and far > 1e-6:
        far /= 2
    return b + far * (aim - b)


def choose_penalty(kernel: Floats, labels: Labels, classes: int, rng: np.random.Generator) -> float:
    """Choose the penalty by which most training images are recognised out of fold, the lowest of ties."""
    fold = np.empty(len(labels), dtype=np.int64)
    order = rng.permutation(len(labels))
    for label in range(classes):
        own = order[labels[order] == label]
        fold[own] = np.arange(len(own)) % FOLDS
    right = [
        sum(_count_right(kernel, labels, classes, penalty, fold == k) for k in range(FOLDS)) for penalty in PENALTIES
    ]
    return PENALTIES[int(np.argmax(right))]


def _count_right(kernel: Floats, labels: Labels, classes: int, penalty: float, out: NDArray[np.bool_]) -> int:
    machine = fit_support_vectors(kernel[np.ix_(~out, ~out)], labels[~out], classes, penalty)
    return int((machine.decide(kernel[np.ix_(out, ~out)]).argmax(1) == labels[out]).sum())
