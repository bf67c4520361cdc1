"""Tables as CSV that a spreadsheet may open: a stranger's text in a cell is text there too, and no formula."""

from __future__ import annotations

from typing import Any

import pandas as pd

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a formula begins with (OWASP, "CSV Injection")."""


def csv_text(frame: pd.DataFrame, *, header: bool = True) -> str:
    """Comma, one line feed a row, a header line if wanted; texts that would be run get an apostrophe, names too."""
    texts = {name: frame[name].map(_safe) for name in frame.select_dtypes(exclude="number")}
    disarmed = frame.assign(**texts).rename(columns=_safe)
    return str(disarmed.to_csv(index=False, header=header, lineterminator="\n"))


def _safe(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
