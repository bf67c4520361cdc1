"""A part of an image next to the part of a training image that it is most similar to, drawn as one image."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image
from torch import Tensor

from core.concepts.prototypes import ImagePart, Match, find_matches, locate_part, show_match
from core.drawing.views import view
from core.network.classifier import Classifier
from study.conditions.parts import mark_part, scale_part

COUNT = 2
"""Prototypes that are shown of each class."""
GAP = 60
"""The gap between the drawings is this part of the width."""


def draw_matches(
    classifier: Classifier, image: Image.Image, matches: Sequence[Match], size: tuple[int, int]
) -> list[Image.Image]:
    """Draw a card (width, height) px for each match: above both images with the part marked, below the parts enlarged.

    ``image`` is as the network sees it, and is on the left.
    """
    cards = []
    for match in matches:
        training, part = show_match(classifier, match)
        seen = view(classifier, training).draw(size)
        own = locate_part(match.row, match.column, match.grid)
        cards.append(_join([(image.resize(size), own), (seen, part)], size))
    return cards


def describe_input(classifier: Classifier, inputs: Tensor, k: int) -> tuple[Match, ...]:
    """Return the matches of an input (C, H, W) that are shown for a class."""
    return find_matches(classifier, inputs, k, count=COUNT)


def _join(pairs: Sequence[tuple[Image.Image, ImagePart]], size: tuple[int, int]) -> Image.Image:
    width, height = size
    gap = max(2, width // GAP)
    half = ((width - gap) // 2, (height - gap) // 2)
    card = Image.new("RGB", size, "white")
    for k, (image, part) in enumerate(pairs):
        left = k * (width - half[0])
        box = scale_part(part, image.size)
        card.paste(mark_part(image, box).resize(half, Image.Resampling.LANCZOS), (left, 0))
        card.paste(image.crop(box).resize(half, Image.Resampling.BICUBIC), (left, height - half[1]))
    return card
