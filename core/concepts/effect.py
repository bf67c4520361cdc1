"""The effect of a concept on the prediction: by intervention, and by mere observation."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from core.errors import ForetellError


@dataclass(frozen=True)
class ConceptEffect:
    """An effect on each class's probability: ``value`` (K,) and its standard ``error`` (K,), both float64."""

    value: Tensor
    error: Tensor


def compute_causal_effect(with_concept: Tensor, without: Tensor) -> ConceptEffect:
    """Compute E[f | do(C = a)] - E[f | do(C = b)] of predictions (N, K) of the same N scenes.

    Goyal et al. 2019 (arXiv:1907.07165), definitions 1 and 2. Row i of both is the same image but for the concept,
    so that the error is that of the differences.
    """
    if with_concept.shape != without.shape:
        raise ForetellError(
            f"Predictions {tuple(with_concept.shape)} and {tuple(without.shape)} are not of the same images under two "
            "interventions: give one of each for every image."
        )
    difference = with_concept.double() - without.double()
    return ConceptEffect(difference.mean(0), _standard_error(difference))


def compute_observed_effect(predictions: Tensor, has_concept: Tensor) -> ConceptEffect:
    """Compute E[f | C = 1] - E[f | C = 0] of predictions (N, K) (ConExp): confounded with whatever goes with C."""
    chosen = has_concept.bool()
    if min(int(chosen.sum()), int((~chosen).sum())) < 2:
        raise ForetellError("An observed effect needs at least two images with the concept and two without.")
    one, other = predictions[chosen].double(), predictions[~chosen].double()
    error = (_standard_error(one).square() + _standard_error(other).square()).sqrt()
    return ConceptEffect(one.mean(0) - other.mean(0), error)


def _standard_error(values: Tensor) -> Tensor:
    return values.std(0) / torch.tensor(len(values)).double().sqrt()
