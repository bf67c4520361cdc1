"""How the numbers in a table are written, on the pages and in the report alike."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np
import pandas as pd

from study.analysis.models.sentences import p_text
from study.analysis.words.headings import is_share

CHANCES = (
    *("p", "p_holm", "p_tukey", "p_mvt", "p_equivalence", "p_equivalence_holm", "p_difference"),
    *("p_all", "p_without"),
)
"""p values, unless a table calls them something else."""
RATIO = "bf01_"
"""Begins the names of Bayes factors."""
POINTS = (
    *("points", "points_low", "points_high", "shift"),
    *("points_all", "points_without", "points_without_low", "points_without_high"),
)
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


def write_rounded(value: float, digits: int, sign: str = "") -> str:
    """Write a rounded number with a minus, and no minus before zero; ``sign`` "+" marks positive ones."""
    return f"{round(float(value), digits) + 0.0:{sign}.{digits}f}".replace("-", "−")


def write_ratio(value: float) -> str:
    """Write a Bayes factor with three significant digits, and one of no practical size as a power of ten."""
    if np.isinf(value) or value == 0:
        return _infinite(value) if value else "0"
    return f"{value:.3g}" if 1e-3 <= value < 1e3 else f"{value:.1e}"


def _form(name: str, values: pd.Series[float]) -> Callable[[float], str]:
    if name.startswith(RATIO):
        return write_ratio
    known = values.replace([np.inf, -np.inf], np.nan).dropna()
    places = 0 if (known == known.round()).all() else 3 if known.abs().max() < 1000 and name not in POINTS else 1
    return lambda value: _infinite(value) if np.isinf(value) else f"{value:,.{places}f}".replace("-", "−")


def _infinite(value: float) -> str:
    return "∞" if value > 0 else "−∞"
