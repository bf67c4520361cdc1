"""Text on drawn cards, as large as there is room for."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import ImageFont

from core.fonts import find_font

LARGEST, SMALLEST = 0.09, 0.03
"""Height of a line of text, as a share of the space."""


def fit_text(
    said: Sequence[str], width: float, height: float, *, largest: float = LARGEST, smallest: float = SMALLEST
) -> tuple[ImageFont.FreeTypeFont, list[list[str]]]:
    """Return the largest font with which wrapped texts have room, and their lines.

    ``largest`` and ``smallest`` are heights of a line as shares of the height; at the smallest, room is not checked.
    """
    share = largest
    while True:
        font = find_font("".join(said), share * height)
        lines = [_wrap(text, font, width) for text in said]
        needed = 1.3 * font.size * (sum(map(len, lines)) + 0.4 * len(lines) + 1)
        if needed <= height or share <= smallest:
            return font, lines
        share *= 0.9


def _wrap(text: str, font: ImageFont.FreeTypeFont, width: float) -> list[str]:
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and font.getlength(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
