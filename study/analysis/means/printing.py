"""Estimated means, contrasts and effects as text for a terminal, and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from study.analysis.means import bayes_factors
from study.analysis.means.adjustment import ADJUSTMENTS
from study.analysis.means.equivalence import EquivalenceTests, write_bounds
from study.analysis.means.means import EstimatedMeans
from study.analysis.models.printing import align_columns, write_number
from study.analysis.models.sentences import coverage_text, p_text
from study.analysis.words.cells import write_ratio
from study.analysis.words.headings import format_headings

_PROBABILITIES = {"p", "p_above", "p_within", "p_equivalence", "p_equivalence_holm", "p_difference"}
_P = _PROBABILITIES | {f"p_{name}" for name in ADJUSTMENTS}


def write_means(made: EstimatedMeans) -> list[str]:
    """Write means, contrasts and notes as lines."""
    contrasts = [] if made.contrasts.empty else ["", f"Contrasts of {made.request}", *write_table(made.contrasts)]
    return [f"Means of {made.request}", *write_table(made.means), *contrasts, "", *made.notes]


def write_equivalence(made: EquivalenceTests) -> list[str]:
    """Write equivalence tests and their notes as lines."""
    coverage = coverage_text(2 * made.alpha)
    head = f"Equivalence within {write_bounds(made.bounds)}{made.unit}"
    return [head, *write_table(made.table, coverage), "", *made.notes]


def write_bayes_factors(table: pd.DataFrame, prior_sd: float, link: str) -> list[str]:
    """Write a table of Bayes factors as lines; ``link`` is that of the model."""
    unit = {"logit": "log-odds", "identity": "in the response's unit"}.get(link, f"{link} scale")
    return ["Bayes factors for no difference", *write_table(table), "", bayes_factors.explain(prior_sd, unit)]


def write_table(table: pd.DataFrame, coverage: str = "95%") -> list[str]:
    """Write a table in columns; its levels first, numbers as articles print them."""
    table = table.drop(columns=[name for name in ("df",) if name in table and table[name].isna().all()])
    headings = format_headings(table.columns, coverage=coverage)
    if "df" in table and "z" in headings:
        headings["z"] = "t"
    rows = [[_write(name, value) for name, value in row.items()] for row in table.to_dict("records")]
    return align_columns([[headings[str(name)] for name in table.columns], *rows])


def _write(name: Any, value: Any) -> str:
    if not isinstance(value, (float, np.floating)):
        return str(value)
    if name in _P:
        return p_text(None if np.isnan(value) else float(value))
    if str(name).startswith(bayes_factors.PREFIX) and not np.isnan(value):
        return write_ratio(float(value))
    return write_number(float(value))


def list_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """List the rows of a table as plain values, None for what is missing."""
    return [{str(name): _plain(value) for name, value in row.items()} for row in table.to_dict("records")]


def as_dict(made: EstimatedMeans) -> dict[str, Any]:
    """Return means, contrasts and notes as plain values, ready for JSON."""
    return {
        "of": str(made.request),
        "scale": made.scale,
        "means": list_rows(made.means),
        "contrasts": list_rows(made.contrasts),
        "notes": list(made.notes),
    }


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, (int, float, bool)) or value is None else str(value)


def write_effects(tables: Sequence[pd.DataFrame], scale: str, *, is_ordinal: bool = False) -> list[str]:
    """Write average marginal effects as lines; those of an ordinal model are on the mean level."""
    words = {
        "link": "on the link scale",
        "response": "on the response scale, where every random effect is 0",
        "population": "on the response scale, averaged over the random effects",
    }
    if is_ordinal and scale != "link":
        words = {name: said.replace("the response scale", "the mean level") for name, said in words.items()}
    lines = [line for table in tables for line in ("", *write_table(table))]
    return [f"Average marginal effects {words[scale]}: each value against the first, +1 of a number", *lines[1:]]
