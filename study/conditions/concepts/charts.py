"""Effects of concepts on each class, from images that can be changed, and the bars that show them to participants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image, ImageDraw

from core.errors import ForetellError
from core.fonts import find_font
from core.network.classifier import Classifier
from data.types import ImageSet

IMAGES = 96
"""Images drawn under every value of a factor."""
BARS = 4
LEAST = 1e-6
"""Probability below which two predictions are alike."""
INK, UP, DOWN = "#202124", "#c8641e", "#2f6fb5"


@dataclass(frozen=True)
class ConceptEffects:
    """Mean probability of each class (V, K) under do(factor = value), for each of a factor's V values."""

    values: Mapping[str, tuple[str, ...]]
    predictions: Mapping[str, np.ndarray]

    def strongest(self, k: int) -> list[tuple[str, float]]:
        """Return the values that do most to class ``k``, each with its effect against its factor's other values."""
        pairs = []
        for factor, values in self.values.items():
            column = self.predictions[factor][:, k]
            effects = (column - column.mean()) * len(column) / (len(column) - 1)
            pairs += list(zip(values, effects.tolist(), strict=True))
        return sorted(pairs, key=lambda one: -abs(one[1]))[:BARS]

    def gain(self, seen: Mapping[str, str], one: int, other: int) -> float:
        """Log odds of class ``one`` against ``other`` that an image with these values adds to those of any image."""
        total = 0.0
        for factor, values in self.values.items():
            column = np.maximum(self.predictions[factor], LEAST)
            here = column[values.index(seen[factor])]
            odds = np.log(here / column.mean(0))
            total += float(odds[one] - odds[other])
        return total


def concept_effects(classifier: Classifier, images: ImageSet, seed: int) -> ConceptEffects:
    """Measure the effects of every factor whose value each image has, but for the categories themselves.

    Raises
    ------
    ForetellError
        The set has none.
    """
    factors = {
        name: factor
        for name, factor in images.factors.items()
        if factor.known is not None and not set(factor.values) & set(images.categories)
    }
    if not factors:
        raise ForetellError(
            f"The condition 'concepts' needs images that can be changed, and {images.name} has none: take the pool "
            "from a generated set such as scenes, or leave the condition out."
        )
    rows = np.random.default_rng(seed).permutation(len(images))[:IMAGES].tolist()

    def predicted(name: str, value: str) -> np.ndarray:
        inputs = torch.stack([classifier.preprocess(factors[name].do(i, value)) for i in rows])
        mean: np.ndarray = classifier.probabilities(inputs).double().mean(0).numpy()
        return mean

    values = {name: factor.values for name, factor in factors.items()}
    return ConceptEffects(values, {name: np.stack([predicted(name, v) for v in values[name]]) for name in values})


def chart(effects: list[tuple[str, float]], size: tuple[int, int]) -> Image.Image:
    """Draw bars to the right for what makes a prediction likelier, to the left for what makes it rarer, in points."""
    width, height = (4 * side for side in size)  # drawn large and made small: text and edges are smooth
    image = Image.new("RGB", (width, height), "white")
    pen, row = ImageDraw.Draw(image), height / max(len(effects), 1)
    font = find_font("".join(name for name, _ in effects), 0.34 * row)
    longest, zero = max(max(abs(effect) for _, effect in effects), 0.01), 0.36 * width
    for i, (name, effect) in enumerate(effects):
        top = i * row
        pen.text((0.04 * width, top + 0.26 * row), name, INK, font, anchor="lm")
        pen.text((0.96 * width, top + 0.26 * row), f"{100 * effect:+.0f}", INK, font, anchor="rm")
        reach = (0.6 if effect > 0 else 0.32) * width * effect / longest
        ends = sorted((zero, zero + reach))
        pen.rectangle((ends[0], top + 0.52 * row, ends[1], top + 0.88 * row), UP if effect > 0 else DOWN)
        pen.line((zero, top + 0.48 * row, zero, top + 0.92 * row), INK, width // 200)
    return image.resize(size, Image.Resampling.LANCZOS)
