"""The contrast of two colours, by the formula of the standard."""

from __future__ import annotations

import re

LEAST = 4.5
"""WCAG 2.2, 1.4.3, of words that are not large."""


def measure_contrast(ink: str, ground: str) -> float:
    """Return the contrast, from 1 to 21, of two opaque colours, ``rgb(r, g, b)`` or ``#rrggbb``, by WCAG 2.2."""
    low, high = sorted(_measure_luminance(colour) for colour in (ink, ground))
    return (high + 0.05) / (low + 0.05)


def _measure_luminance(colour: str) -> float:
    if colour.startswith("#"):
        levels = [int(part, 16) for part in re.findall("..", colour[1:])]
    else:
        assert colour.startswith("rgb("), colour  # opaque
        levels = [int(part) for part in colour.removeprefix("rgb(").rstrip(")").split(",")]
    shares = [level / 255 for level in levels]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
