"""Tables as CSV that a spreadsheet can open safely: text in a cell is never run as a formula."""

from __future__ import annotations

from typing import Any

import pandas as pd

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a formula (OWASP, "CSV Injection")."""


def csv_text(frame: pd.DataFrame, *, header: bool = True, verbatim: bool = False) -> str:
    """Format as CSV with line feeds and an optional header; text that would run as a formula gets an apostrophe.

    ``verbatim`` leaves it out: for a file that a service reads, to whom ``'-7`` is another participant than ``-7``.
    """
    if verbatim:
        return str(frame.to_csv(index=False, header=header, lineterminator="\n"))
    texts = {name: frame[name].map(_safe) for name in frame.select_dtypes(exclude="number")}
    disarmed = frame.assign(**texts).rename(columns=_safe)
    return str(disarmed.to_csv(index=False, header=header, lineterminator="\n"))


def _safe(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
