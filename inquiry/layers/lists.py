"""Parameters of questions that are lists, separated by commas."""

from __future__ import annotations

from collections.abc import Collection

from core.errors import ForetellError


def split_names(text: str) -> list[str]:
    """Split a list into its names, each once."""
    return list(dict.fromkeys(name.strip() for name in text.split(",")))


def choose_names(parameter: str, text: str, known: Collection[str], what: str) -> list[str]:
    """Return the listed names.

    Raises
    ------
    ForetellError
        One is not among the known names, which are of ``what``.
    """
    for name in split_names(text):
        if name not in known:
            raise ForetellError(f"{parameter}={text!r}: {name!r} is no {what}. There are: {', '.join(known)}.")
    return split_names(text)


def read_numbers(parameter: str, text: str) -> list[float]:
    """Return the listed numbers.

    Raises
    ------
    ForetellError
        One is no number.
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ForetellError(
            f"{parameter}={text!r} is not a list of numbers separated by commas, such as 1,2,4."
        ) from None


def count_listed(listed: str) -> int:
    """Count what a parameter lists."""
    return listed.count(",") + 1
