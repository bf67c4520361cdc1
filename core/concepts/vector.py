"""Concept activation vectors: the direction in a layer that leads from random pictures to those of a concept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import expit
from torch import Tensor

from core.errors import ForetellError

LEAST = 8
"""Pictures of either kind below which a direction and its accuracy mean nothing."""
HELD_OUT = 4
"""One picture in so many is kept for the accuracy."""


@dataclass(frozen=True)
class ConceptVector:
    """A unit normal (D,) of the hyperplane, towards the concept, and its accuracy on held-out pictures."""

    direction: Tensor
    accuracy: float


def concept_vector(concept: Tensor, others: Tensor, *, penalty: float = 1.0) -> ConceptVector:
    """Separate activations (N, D) of a concept from those (M, D) of other pictures by a logistic regression.

    Kim et al. 2018 (arXiv:1711.11279), section 3.2. ``penalty`` is that of the squared weights, after the activations
    were divided by their overall spread: with far more dimensions than pictures it decides which of many separating
    planes is taken.

    Raises
    ------
    ForetellError
        Too few pictures, or a layer that says the same of all of them.
    """
    if min(len(concept), len(others)) < LEAST:
        raise ForetellError(
            f"{len(concept)} pictures of the concept and {len(others)} others: give at least {LEAST} of each."
        )
    x = torch.cat([concept, others]).double().flatten(1)
    y = torch.cat([torch.ones(len(concept)), torch.zeros(len(others))]).double()
    kept_out = torch.cat([torch.arange(len(part)) % HELD_OUT == HELD_OUT - 1 for part in (concept, others)])
    centre, spread = x[~kept_out].mean(0), x[~kept_out].std()
    if not spread > 0:
        raise ForetellError("The layer says the same of all these pictures: choose another layer.")
    scaled = (x - centre) / spread
    weights, bias = _fitted(scaled[~kept_out], y[~kept_out], penalty)
    right = ((scaled[kept_out] @ weights + bias > 0) == (y[kept_out] > 0)).double().mean()
    return ConceptVector((weights / weights.norm()).float(), float(right))


def _fitted(x: Tensor, y: Tensor, penalty: float) -> tuple[Tensor, float]:
    """Weights and bias with the least mean logistic loss + penalty |w|^2 / (2 N).

    The best weights are a sum of the pictures (representer theorem): the search is within their span, of N dimensions
    at most, and not over all D.
    """
    span = torch.linalg.svd(x, full_matrices=False).Vh
    z, sign, size = (x @ span.T).numpy(), (2 * y - 1).numpy(), len(y)

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        weights, margin = parameters[:-1], sign * (z @ parameters[:-1] + parameters[-1])
        pull = -sign * expit(-margin) / size
        value = np.logaddexp(0, -margin).mean() + penalty / (2 * size) * weights @ weights
        return value, np.append(pull @ z + penalty / size * weights, pull.sum())

    best = minimize(loss, np.zeros(z.shape[1] + 1), jac=True, method="L-BFGS-B").x
    return span.T @ torch.from_numpy(best[:-1]), float(best[-1])
