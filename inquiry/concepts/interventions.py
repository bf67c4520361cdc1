"""Predictions of a network for a set's images when one factor in them is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from core.concepts.effect import ConceptEffect, compute_causal_effect
from core.network.classifier import Classifier
from data.types import ImageSet


def draw_rows(size: int, seed: int, count: int) -> list[int]:
    """Draw the images of a set for an intervention: at most ``count``, in order."""
    chosen = np.random.default_rng([seed, 1]).permutation(size)[:count]
    return [int(i) for i in np.sort(chosen)]


def predict_under_intervention(
    classifier: Classifier, images: ImageSet, rows: Sequence[int], factor: str | None, value: str
) -> np.ndarray:
    """Predict probabilities (N, K) of these images under do(factor = value), or unchanged."""
    drawn = (images.open(i) if factor is None else images.factors[factor].do(i, value) for i in rows)
    inputs = torch.stack([classifier.preprocess(image) for image in drawn])
    probabilities: np.ndarray = classifier.probabilities(inputs).numpy()
    return probabilities


def against_others(under: Mapping[str, np.ndarray], value: str) -> ConceptEffect:
    """Estimate the effect of do(value) on each class, against the mean of the factor's other values."""
    others = np.mean([column for other, column in under.items() if other != value], axis=0)
    return compute_causal_effect(torch.from_numpy(under[value]), torch.from_numpy(others))
