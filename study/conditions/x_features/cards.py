"""Parts of an image where x-features of a class are strongest, and the cards that show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

import torch
from PIL import Image, ImageDraw
from torch import Tensor

from core.concepts.prototypes import ImagePart
from core.drawing.rendering import AGAINST, FOR
from study.conditions.lettering import fit_text
from study.conditions.parts import mark_part, scale_part
from study.conditions.x_features.fit import ClassFeatures

COUNT = 2
"""x-features that are shown of each class."""
SHARE = 4
"""The side of a part is this part of the image's, rounded up to whole places."""
STRONG, CLEAR = 0.5, 0.2
"""Parts of what all x-features of a class usually add, from which on one speaks strongly or clearly."""
GAP = 60
"""The gap between the drawings is this part of the width."""
INK = "#202124"
SCALE = 4
"""Drawn so many times larger and made small: text is smooth."""


@dataclass(frozen=True)
class ShownPart:
    """The part of an image where an x-feature is strongest.

    Attributes
    ----------
    adds
        What the x-feature adds to the logit, more than it usually does.
    strength
        That, as a part of what all x-features add to an image of the class; below 0 it speaks against the class.
    """

    part: ImagePart
    adds: float
    strength: float


def choose_parts(features: ClassFeatures, maps: Tensor) -> tuple[ShownPart, ...]:
    """Choose the x-features that an image has more of than usual, the strongest first, each with its part.

    ``maps`` (S, h, w) are the layer's outputs for the image. An x-feature that an image has less of than usual is
    nowhere in the image, so it is left out.
    """
    x_features = features.x_features
    drawn = x_features.draw_maps(maps[None])[0]
    adds = drawn.sum((1, 2))
    excess = adds - features.usual
    has_more = excess * x_features.weights > 0
    order = excess.abs().argsort(descending=True, stable=True)
    chosen = [i for i in order.tolist() if has_more[i]][:COUNT]
    return tuple(
        ShownPart(
            find_part(drawn[i] * x_features.weights[i].sign()), float(excess[i]), float(excess[i]) / features.reach
        )
        for i in chosen
    )


def find_part(values: Tensor) -> ImagePart:
    """Find the part with the largest sum of values (h, w), a quarter of the image on a side."""
    height, width = values.shape
    side = ceil(height / SHARE), ceil(width / SHARE)
    sums = torch.nn.functional.avg_pool2d(values[None, None], side, stride=1)[0, 0]
    row, column = divmod(int(sums.argmax()), sums.shape[1])
    return ImagePart(column / width, row / height, (column + side[1]) / width, (row + side[0]) / height)


def word_strength(strength: float, texts: Mapping[str, str]) -> str:
    """Say how strongly a part speaks for or against a name, in the study's language."""
    size = "strongly" if abs(strength) >= STRONG else "clearly" if abs(strength) >= CLEAR else "slightly"
    return texts[f"x_feature_{size}_{'for' if strength > 0 else 'against'}"]


def draw_cards(
    image: Image.Image, shown: tuple[ShownPart, ...], texts: Mapping[str, str], size: tuple[int, int]
) -> list[Image.Image]:
    """Draw a card (width, height) px for each part: the image with the part framed, the part, and words below.

    The frame is orange where the part speaks for the name and blue where it speaks against it. Without any part, one
    card says so.
    """
    half = _halve(size)
    if not shown:
        card = _write(texts["x_feature_none"], size)
        card.paste(image.resize(half, Image.Resampling.LANCZOS), ((size[0] - half[0]) // 2, 0))
        return [card]
    cards = []
    for one in shown:
        card = _write(word_strength(one.strength, texts), size)
        box = scale_part(one.part, image.size)
        red, green, blue = (FOR if one.strength > 0 else AGAINST).astype(int).tolist()
        framed = mark_part(image, box, (red, green, blue))
        card.paste(framed.resize(half, Image.Resampling.LANCZOS), (0, 0))
        card.paste(image.crop(box).resize(half, Image.Resampling.BICUBIC), (size[0] - half[0], 0))
        cards.append(card)
    return cards


def _halve(size: tuple[int, int]) -> tuple[int, int]:
    gap = max(2, size[0] // GAP)
    return (size[0] - gap) // 2, (size[1] - gap) // 2


def _write(said: str, size: tuple[int, int]) -> Image.Image:
    """Draw a card with words in its lower half."""
    width, height = (SCALE * side for side in size)
    card = Image.new("RGB", (width, height), "white")
    font, (lines,) = fit_text([said], 0.9 * width, 0.45 * height, largest=0.25, smallest=0.08)
    line = 1.3 * font.size
    top = 0.76 * height - len(lines) * line / 2
    for k, words in enumerate(lines):
        ImageDraw.Draw(card).text((width / 2, top + (k + 0.5) * line), words, INK, font, anchor="mm")
    return card.resize(size, Image.Resampling.LANCZOS)
