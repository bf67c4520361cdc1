"""Interventions on scenes: redraw them with one change, do(context), do(object) or do(colour)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from PIL import Image

from data.errors import DataError
from data.scenes.contexts import CONTEXTS
from data.scenes.generator import Scene, render
from data.scenes.shapes import CATEGORIES

HUES: Mapping[str, int] = MappingProxyType({"red": 0, "yellow": 42, "green": 85, "blue": 160, "purple": 205})
"""Hues of do(colour), in 256 parts of the circle."""
LEAST_SATURATION = 128
"""Least saturation, of 255: otherwise a white object would have no colour."""


def other_contexts(scene: Scene) -> list[Scene]:
    """Draw the same object, pose and light in every other context."""
    return [render(scene.seed, category=scene.label, context=name) for name in CONTEXTS if name != scene.context]


def other_objects(scene: Scene) -> list[Scene]:
    """Draw every other object in its place, with the same context and light."""
    return [render(scene.seed, category=name, context=scene.context) for name in CATEGORIES if name != scene.label]


def recolour_object(scene: Scene, colour: str) -> Image.Image:
    """Draw the image with the object's visible pixels in one hue, as light and at least half as saturated.

    Raises
    ------
    DataError
        Unknown colour.
    """
    if colour not in HUES:
        raise DataError(f"Unknown colour {colour!r} of the scenes. Known: {', '.join(HUES)}.")
    pixels = np.array(scene.image.convert("HSV"))
    pixels[scene.mask, 0] = HUES[colour]
    pixels[scene.mask, 1] = np.maximum(pixels[scene.mask, 1], LEAST_SATURATION)
    changed = Image.fromarray(pixels, "HSV").convert("RGB")
    return Image.composite(changed, scene.image, Image.fromarray(scene.mask))
