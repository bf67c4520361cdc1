"""Tables for a LaTeX document with the package booktabs."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pandas as pd

_WRITTEN = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "–": "--",
    "×": r"$\times$",
    "∞": r"$\infty$",
    "χ²": r"$\chi^2$",
    "β": r"$\beta$",
    "<": "$<$",
    ">": "$>$",
    "±": r"$\pm$",
}
_SPECIAL = re.compile("|".join(map(re.escape, sorted(_WRITTEN, key=len, reverse=True))))
_STARS = re.compile(r"(\*+)$")
_STATISTICS = ("z", "t", "p", "F")


def write_table(headings: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """Write a table of texts: the first column begins at the left, the others end at the right; no rules between."""
    table = pd.DataFrame(cells, columns=[_write_heading(name) for name in headings])
    style = table.style.format(_write_text).hide(axis="index")
    layout = "l" + "r" * (len(headings) - 1)
    return str(style.to_latex(hrules=True, column_format=layout)).replace("$-$$\\infty$", r"$-\infty$")


def _write_heading(heading: str) -> str:
    return f"${heading}$" if heading in _STATISTICS else _write_text(heading)


def _write_text(text: str) -> str:
    """Escape what LaTeX would read as a command; stars at the end are raised."""
    return _STARS.sub(r"$^{\1}$", _SPECIAL.sub(lambda match: _WRITTEN[match[0]], text))
