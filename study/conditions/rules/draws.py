"""Images whose factors are known, as they are or drawn again with random values of one factor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PIL import Image

from core.errors import ForetellError
from data.types import Factor, ImageSet


@dataclass(frozen=True)
class DescribedImages:
    """Images and the values of their factors.

    Attributes
    ----------
    values
        The value of each factor in each of the N images.
    open
        Opens an image.
    """

    values: dict[str, list[str]]
    open: Callable[[int], Image.Image]

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))


def list_known_factors(images: ImageSet) -> dict[str, Factor]:
    """Return the factors whose value each image of a set has.

    Raises
    ------
    ForetellError
        The set has none.
    """
    factors = {name: factor for name, factor in images.factors.items() if factor.known is not None}
    if not factors:
        raise ForetellError(
            f"Rules about objects and contexts need images of which these are known, and of {images.name} nothing is "
            "known: take a generated set such as scenes."
        )
    return factors


def describe_images(images: ImageSet) -> DescribedImages:
    """Describe the images of a set as they are."""
    factors = list_known_factors(images)
    return DescribedImages({name: list(factor.known or ()) for name, factor in factors.items()}, images.open)


def draw_again(images: ImageSet, count: int, seed: int) -> DescribedImages:
    """Draw images of a set again, each with a random value of one factor other than its category.

    Factors that go together in the set, such as an object and its usual context, do not in these images.

    Raises
    ------
    ForetellError
        As in `list_known_factors`, or no factor but the category.
    """
    factors = list_known_factors(images)
    free = [name for name, factor in factors.items() if not set(factor.values) & set(images.categories)]
    if not free:
        raise ForetellError(f"Of the images of {images.name} only the category can be changed, so none is drawn again.")
    draws = np.random.default_rng(seed)
    rows = (np.arange(count) % len(images)).tolist()
    changed = [free[k] for k in draws.integers(len(free), size=count)]
    given = [factors[name].values[draws.integers(len(factors[name].values))] for name in changed]
    values = {name: [(factor.known or ())[i] for i in rows] for name, factor in factors.items()}
    for k, (name, value) in enumerate(zip(changed, given, strict=True)):
        values[name][k] = value
    return DescribedImages(values, lambda k: factors[changed[k]].do(rows[k], given[k]))
