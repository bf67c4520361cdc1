"""Concept activation vectors: the direction in a layer from random images to those of a concept.

All that such vectors say depends on the images' inner products alone (representer theorem): `Activations` takes these
once, and each of the many fits of a test is within as many dimensions as it has images.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit
from torch import Tensor

from core.errors import ForetellError

LEAST = 8
"""Images of either kind below which a direction and its accuracy are meaningless."""
HELD_OUT = 4
"""One image in this many is held out for the accuracy."""
COLUMNS = 2**14
"""Dimensions of which a copy in float64 is made at a time."""
ALIKE = 1e-12
"""Share of the images' mean square below which their differences are rounding."""


@dataclass(frozen=True)
class ConceptVector:
    """A unit normal (D,) of the hyperplane, towards the concept, and its accuracy on held-out images."""

    direction: Tensor
    accuracy: float


@dataclass(frozen=True)
class CombinedVector:
    """The unit normal as a ``combination`` (N,) of N images' activations, which sums to 0, float64; its accuracy."""

    combination: Tensor
    accuracy: float


class Activations:
    """Activations (N, D) of all images that the vectors of a layer are learned from."""

    def __init__(self, x: Tensor) -> None:
        self._x, self._mean = x, x.mean(0, dtype=torch.float64)
        self._gram = self.products(x)
        self._sums = x.sum(1, dtype=torch.float64)
        self._squares = torch.linalg.vector_norm(x, dim=1, dtype=torch.float64).square()

    def products(self, others: Tensor) -> Tensor:
        """Compute the inner products (M, N), float64, of ``others`` (M, D) with the activations less their mean."""
        total = torch.zeros(len(others), len(self._x)).double()
        for first in range(0, self._x.shape[1], COLUMNS):
            part = slice(first, first + COLUMNS)
            total += others[:, part].double() @ (self._x[:, part] - self._mean[part]).T
        return total

    def vector(self, concept: Tensor, others: Tensor, penalty: float = 1.0) -> CombinedVector:
        """Separate the images ``concept`` (n,) from ``others`` (m,), both indices, as `concept_vector` does.

        Raises
        ------
        ForetellError
            Too few images, a layer that says the same of all of them, or a penalty that is none.
        """
        _refuse(concept, others, penalty)
        rows = torch.cat([concept, others])
        sign = torch.cat([torch.ones(len(concept)), -torch.ones(len(others))]).double()
        learned = torch.cat([torch.arange(len(part)) % HELD_OUT != HELD_OUT - 1 for part in (concept, others)])
        gram, centred, spread = self._scale_products(rows, learned)
        weights, bias = _fit_hyperplane(gram[learned][:, learned].numpy(), sign[learned].numpy(), penalty)
        margin = gram[:, learned] @ weights + bias
        right = (margin > 0) == (sign > 0)
        length = (weights @ gram[learned][:, learned] @ weights).sqrt() * spread
        combination = torch.zeros(len(self._x)).double()
        combination[rows] = weights @ centred[learned] / length
        return CombinedVector(combination, float(right[~learned].double().mean()))

    def _scale_products(self, rows: Tensor, learned: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Scale products of n images: less the mean of those learned from, divided by the spread of all their numbers.

        Inner products (n, n); what makes activations such differences (n, n); the spread.
        """
        own = rows[learned]
        size, squares = len(own) * self._x.shape[1], self._squares[own].sum()
        variance = (squares - self._sums[own].sum().square() / size) / (size - 1)
        centred = torch.eye(len(rows)).double() - learned.double() / learned.sum()
        gram = centred @ self._gram[rows][:, rows] @ centred.T
        if not gram.diagonal()[learned].sum() > ALIKE * squares:
            raise ForetellError("The layer gives the same output for all these images: choose another layer.")
        return gram / variance, centred, variance.sqrt()


def concept_vector(concept: Tensor, others: Tensor, *, penalty: float = 1.0) -> ConceptVector:
    """Separate activations (N, D) of a concept from those (M, D) of other images by a logistic regression.

    Kim et al. 2018 (arXiv:1711.11279), section 3.2. ``penalty`` is that of the squared weights, after the activations
    were divided by their overall spread: with far more dimensions than images it decides which of many separating
    planes is taken.

    Raises
    ------
    ForetellError
        Too few images, a layer that says the same of all of them, or a penalty that is none.
    """
    x = torch.cat([concept, others]).flatten(1)
    vector = Activations(x).vector(torch.arange(len(concept)), torch.arange(len(concept), len(x)), penalty)
    return ConceptVector((vector.combination @ x.double()).float(), vector.accuracy)


def _refuse(concept: Tensor, others: Tensor, penalty: float) -> None:
    if min(len(concept), len(others)) < LEAST:
        raise ForetellError(
            f"{len(concept)} images of the concept and {len(others)} others: give at least {LEAST} of each."
        )
    if not penalty > 0:
        raise ForetellError(f"penalty={penalty}: only a penalty above 0 makes the plane unique; give one.")


def _fit_hyperplane(gram: NDArray[np.float64], sign: NDArray[np.float64], penalty: float) -> tuple[Tensor, float]:
    """Fit weights as a combination (N,) of N images with inner products ``gram``, and the bias.

    They have the least mean logistic loss + penalty |w|^2 / (2 N). Where its gradient is 0, each image's part in
    them is ``sign expit(-margin) / penalty``.
    """
    from sklearn.linear_model import LogisticRegression  # seconds, which only a fit is to cost

    scale, basis = np.linalg.eigh(gram)
    z = basis * np.sqrt(np.maximum(scale, 0))
    fit = LogisticRegression(C=1 / penalty, solver="newton-cholesky", tol=1e-11).fit(z, sign)
    parts = sign * expit(-sign * fit.decision_function(z)) / penalty
    return torch.from_numpy(parts), float(fit.intercept_[0])
