"""A response of two words as 0 and 1, the way R reads a factor."""

from __future__ import annotations

import re

import pandas as pd

_RESPONSE = re.compile(r"^\s*([A-Za-z_.][\w.]*)\s*~")


def coded_response(frame: pd.DataFrame, formula: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The frame with a two-valued text response as 0/1 (the first in the alphabet is 0), and the sentence that says so.

    Any other response is left as it is.
    """
    found = _RESPONSE.match(formula)
    if found is None or found.group(1) not in frame.columns:
        return frame, ()
    name = found.group(1)
    if pd.api.types.is_numeric_dtype(frame[name]) or pd.api.types.is_bool_dtype(frame[name]):
        return frame, ()
    values = sorted(frame[name].dropna().unique())
    if len(values) != 2:
        return frame, ()
    coded = frame[name].map({values[0]: 0, values[1]: 1})
    return frame.assign(**{name: coded}), (f"{name}: {values[0]!r} counts as 0 and {values[1]!r} as 1.",)
