"""Read sizes, effect-size multipliers, slopes and pay as the page and the command take them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TypeVar

from core.errors import ForetellError

Number = TypeVar("Number", int, float)
LARGEST_MULTIPLE = 10.0
FEWEST_PARTICIPANTS, MOST_PARTICIPANTS = 2, 2000
"""Per condition of a simulated study."""
SLOPES = {
    "participant": "participants differ in the effect of each trial type",
    "category": "categories differ in the effect of each explanation",
    "item": "images differ in the effect of each explanation",
}
"""What a random slope by each grouping is one of."""
LARGEST_SLOPE = 5.0
_SEPARATOR = re.compile(r"\s*[,;]\s*|\s+")
_DECIMAL_COMMA = re.compile(r"(?<![\d.])0,(\d+)(?![\d.])")


def parse_numbers(text: str, kind: type[Number], what: str, example: str) -> tuple[Number, ...]:
    """Parse numbers separated by commas, semicolons or spaces, each once.

    Raises
    ------
    ForetellError
        Something else, with ``example`` as the remedy.
    """
    if not text.strip():
        raise ForetellError(f"{what}: give at least one number, like {example}.")
    try:
        numbers = tuple(dict.fromkeys(kind(part) for part in _SEPARATOR.split(text.strip())))
    except ValueError:
        raise ForetellError(f"{what} {text!r} is not a list of numbers like {example}.") from None
    if not all(math.isfinite(value) and value >= 0 for value in numbers):
        raise ForetellError(f"{what} {text!r}: give numbers of 0 or more, like {example}.")
    return numbers


def parse_sizes(text: str, what: str) -> tuple[int, ...]:
    """Parse participants per condition, smallest first.

    Raises
    ------
    ForetellError
        No whole numbers from `FEWEST_PARTICIPANTS` to `MOST_PARTICIPANTS`.
    """
    sizes = sorted(parse_numbers(text, int, what, "10, 20, 40"))
    if not FEWEST_PARTICIPANTS <= sizes[0] <= sizes[-1] <= MOST_PARTICIPANTS:
        raise ForetellError(
            f"{what} {text!r}: give between {FEWEST_PARTICIPANTS} and {MOST_PARTICIPANTS:,} participants per condition."
        )
    return tuple(sizes)


def parse_multiples(text: str, what: str) -> tuple[float, ...]:
    """Parse multiples of the assumed effects.

    Raises
    ------
    ForetellError
        No numbers from 0 to `LARGEST_MULTIPLE`, or ``0,5``, which may mean one number or two.
    """
    if meant := _DECIMAL_COMMA.search(text):
        digits = meant[1]
        raise ForetellError(
            f"{what} {text!r}: write 0.{digits} with a decimal point; if you mean the two numbers 0 and {digits}, put "
            "a space after the comma."
        )
    multiples = parse_numbers(text, float, what, "1, 0.5")
    if max(multiples) > LARGEST_MULTIPLE:
        raise ForetellError(
            f"{what} {text!r}: effects more than {LARGEST_MULTIPLE:g} times as large as assumed make every response "
            "the same; give smaller ones."
        )
    return multiples


def parse_pay(pay: float, what: str) -> float:
    """Return the pay, if it is an amount.

    Raises
    ------
    ForetellError
        A negative amount, or none.
    """
    if not (math.isfinite(pay) and pay >= 0):
        raise ForetellError(f"{what} {pay:g}: give an amount of 0 or more.")
    return pay


def parse_slopes(given: Mapping[str, str], what: str) -> dict[str, float]:
    """Parse standard deviations of random slopes by grouping.

    Raises
    ------
    ForetellError
        Another name than those of `SLOPES`, or no number from 0 to `LARGEST_SLOPE`.
    """
    sds = {}
    for group, text in given.items():
        if group not in SLOPES:
            raise ForetellError(f"{what} {group!r}: give one of {', '.join(SLOPES)}.")
        sd, *others = parse_numbers(text, float, f"{what} {group}", "0.8")
        if others or sd > LARGEST_SLOPE:
            raise ForetellError(f"{what} {group}={text}: give one number from 0 to {LARGEST_SLOPE:g} (log-odds).")
        sds[group] = sd
    return sds
