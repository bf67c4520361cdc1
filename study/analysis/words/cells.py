"""How the numbers in a table are written, on the pages and in the report alike."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np
import pandas as pd

from study.analysis.models.sentences import p_text
from study.analysis.words.headings import is_share

CHANCES = ("p", "p_holm", "p_tukey", "p_mvt")
"""p values, unless a table calls them something else."""
POINTS = ("points", "points_low", "points_high")
"""Percentage points: more than one digit says nothing."""
Forms = Mapping[str, Callable[[float], str]]
"""How the numbers of a column are written, by the name of the column."""


def list_forms(
    frame: pd.DataFrame, chances: Collection[str] = CHANCES, own_shares: Collection[str] = frozenset()
) -> Forms:
    """List how the numbers of each column are written; ``own_shares`` are in percent besides the accuracies."""
    shares = {*own_shares} | {name for name in frame if is_share(name, frame.columns)}
    return {
        name: p_text if name in chances else _write_share if name in shares else _form(name, frame[name])
        for name in frame.select_dtypes("number")
    }


def _write_share(value: float) -> str:
    return f"{value:.1%}".replace("-", "−")


def _form(name: str, values: pd.Series[float]) -> Callable[[float], str]:
    known = values.replace([np.inf, -np.inf], np.nan).dropna()
    places = 0 if (known == known.round()).all() else 3 if known.abs().max() < 1000 and name not in POINTS else 1
    return lambda value: _infinite(value) if np.isinf(value) else f"{value:,.{places}f}".replace("-", "−")


def _infinite(value: float) -> str:
    return "∞" if value > 0 else "−∞"
