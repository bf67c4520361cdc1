"""Equivalence bounds: between which differences two conditions count as equivalent, as plans and commands have them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

Bounds = tuple[float, float]
"""Lower and upper bound, in percentage points of a probability, else in the response's unit."""
LARGEST_POINTS = 100.0


def parse_bounds(given: str | float | Sequence[float], *, largest: float = math.inf) -> Bounds:
    """Parse ``5`` (from -5 to 5) or ``"-5, 10"``, as a text, a number or a pair.

    Raises
    ------
    ValueError
        No such numbers, 0 is not between them, or a bound of `largest` or more.
    """
    numbers = _read_numbers(given)
    if len(numbers) == 1:
        numbers = [-abs(numbers[0]), abs(numbers[0])]
    if len(numbers) != 2 or not all(map(math.isfinite, numbers)):
        raise ValueError(f"the equivalence bounds {given!r} cannot be read: write 5 for −5 to 5, or -5,10.")
    low, high = numbers
    if not low < 0 < high:
        raise ValueError(
            f"the equivalence bounds {given!r} do not have 0 between them: write 5 for −5 to 5, or -5,10, with decimal "
            "points."
        )
    if max(-low, high) >= largest:
        raise ValueError(f"the equivalence bounds {given!r} must be smaller than {largest:g} percentage points.")
    return low, high


def _read_numbers(given: str | float | Sequence[float]) -> list[float]:
    try:
        if isinstance(given, str):
            return [float(part) for part in re.split(r"\s*[,;]\s*|\s+", given.replace("−", "-").strip("[] "))]
        if isinstance(given, (bool, dict)):
            return []
        return [float(given)] if isinstance(given, (int, float)) else [float(value) for value in given]
    except (TypeError, ValueError):
        return []
