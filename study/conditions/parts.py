"""Rectangular parts of a drawn image: their pixels, and a frame around them."""

from __future__ import annotations

from PIL import Image, ImageDraw

from core.concepts.prototypes import ImagePart
from core.drawing.rendering import MARK

Box = tuple[int, int, int, int]
"""Left, top, right and bottom, px."""


def scale_part(part: ImagePart, size: tuple[int, int]) -> Box:
    """Return the pixels of a part of an image of ``size`` = (width, height)."""
    width, height = size
    return (round(part.left * width), round(part.top * height), round(part.right * width), round(part.bottom * height))


def mark_part(image: Image.Image, box: Box, colour: tuple[int, int, int] = MARK) -> Image.Image:
    """Draw a frame around a part of an image."""
    marked = image.copy()
    left, top, right, bottom = box
    pen, line = ImageDraw.Draw(marked), max(2, image.width // 60)
    pen.rectangle((left, top, right - 1, bottom - 1), outline=colour, width=line)
    return marked
