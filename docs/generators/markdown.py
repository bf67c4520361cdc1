"""Shared formatting: table rows, numbers and intervals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

MISSING = "–"


def format_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Format a Markdown table, one string a line."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return [*lines, *(f"| {' | '.join(str(value) for value in row)} |" for row in rows)]


def escape_cell(text: str) -> str:
    """Fit a docstring or help text into one table cell: no line breaks, no bare pipes, single backticks."""
    flat = " ".join(text.replace("``", "`").split()).replace("|", "\\|")
    outside = re.split(r"(`[^`]*`)", flat)
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in outside)


def format_interval(ends: Sequence[float]) -> str:
    """Format an interval with two decimals."""
    return f"[{ends[0]:.2f}, {ends[1]:.2f}]"


def format_p(value: float) -> str:
    """Format a p-value as articles print it."""
    return "< .001" if value < 0.001 else f"{value:.3f}".lstrip("0") if value < 0.9995 else "1"


def first_sentence(docstring: str | None) -> str:
    """Return the first line of a docstring."""
    return (docstring or "").strip().split("\n")[0]
