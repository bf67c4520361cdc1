"""Table 1: the coefficients of a model, as a table and for LaTeX."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd

from study.analysis.models import intervals
from study.analysis.models.records import Coefficient, MixedModel
from study.analysis.models.sentences import p_text, words
from study.analysis.report.latex import write_table
from study.analysis.words.cells import write_rounded

COLUMNS = ["term", "estimate", "se", "low", "high", "z", "p", "stars", "odds_ratio"]
WITH_DF = ["term", "estimate", "se", "low", "high", "t", "df", "p", "stars", "odds_ratio"]
"""Of models whose coefficients have degrees of freedom."""
STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))


def stars(p: float | None) -> str:
    """Mark significance by the customary stars: * below .05, ** below .01, *** below .001."""
    return "" if p is None else next((mark for bound, mark in STARS if p < bound), "")


def table(model: MixedModel) -> pd.DataFrame:
    """Make Table 1: term, estimate, se, low, high (95%, Wald), z (or t and df), p, stars, odds_ratio.

    Infinite estimates appear as infinity, without se, interval, test and p.
    """
    rows = [_row(c, model.limit(c)) for c in model.coefficients]
    made = pd.DataFrame(rows).assign(**intervals.wald(model)[["low", "high"]])
    made = made.rename(columns={"z": "t"})[WITH_DF] if _has_df(model) else made[COLUMNS]
    return pd.concat([made, _tabulate_thresholds(model)], ignore_index=True) if model.thresholds else made


def _has_df(model: MixedModel) -> bool:
    return any(c.df is not None for c in model.coefficients)


def _tabulate_thresholds(model: MixedModel) -> pd.DataFrame:
    """Tabulate the thresholds of an ordinal model as the coefficients; none is tested against 0."""
    rows = [(f"threshold {c.term}", c.estimate, c.se, *intervals.find_wald_limits(c)) for c in model.thresholds]
    made = pd.DataFrame(rows, columns=COLUMNS[:5]).assign(stars="")
    return made.reindex(columns=WITH_DF if _has_df(model) else COLUMNS)


def tabulate_random(model: MixedModel) -> pd.DataFrame:
    """Tabulate the random effects: group, levels (their number), term, sd (link scale)."""
    levels = {block.group: len(block.modes) for block in model.blocks}
    rows = [(effect.group, levels.get(effect.group), words(effect.term), effect.sd) for effect in model.random]
    return pd.DataFrame(rows, columns=["group", "levels", "term", "sd"])


def _row(c: Coefficient, estimate: float) -> dict[str, object]:
    with np.errstate(over="ignore"):
        ratio = float(np.exp(estimate))
    return {
        "term": words(c.term),
        "estimate": estimate,
        "se": c.se,
        "z": c.z,
        "df": c.df,
        "p": c.p,
        "stars": stars(c.p),
        "odds_ratio": ratio,
    }


def latex(model: MixedModel) -> str:
    """Write Table 1 for LaTeX: term, estimate with its stars, standard error, z (or t and df) and p."""
    named = [replace(c, term=f"threshold {c.term}", z=None, p=None) for c in model.thresholds]
    tests = ("t", "df") if _has_df(model) else ("z",)
    cells = [
        (
            words(c.term),
            _write_estimate(c, model.limit(c)),
            *map(_write_number, (c.se, c.z, c.df)[: 1 + len(tests)]),
            p_text(c.p),
        )
        for c in (*model.coefficients, *named)
    ]
    return write_table(("Term", "β", "SE", *tests, "p"), cells)


def _write_number(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else write_rounded(value, 2)


def _write_estimate(c: Coefficient, estimate: float) -> str:
    if math.isinf(estimate):
        return "−∞" if estimate < 0 else "∞"
    return _write_number(estimate) + stars(c.p)
