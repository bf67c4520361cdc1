"""Table 1: the coefficients of a model, as a table and for LaTeX."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from study.analysis.models import intervals
from study.analysis.models.records import Coefficient, MixedModel
from study.analysis.models.sentences import p_text, words

COLUMNS = ["term", "estimate", "se", "low", "high", "z", "p", "stars", "odds_ratio"]
STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))


def stars(p: float | None) -> str:
    """Mark significance by the customary stars: * below .05, ** below .01, *** below .001."""
    return "" if p is None else next((mark for bound, mark in STARS if p < bound), "")


def table(model: MixedModel) -> pd.DataFrame:
    """Make Table 1: term, estimate, se, low, high (95%, Wald), z, p, stars, odds_ratio.

    Infinite estimates appear as infinity, without se, interval, z and p.
    """
    rows = [_row(c, model.limit(c)) for c in model.coefficients]
    return pd.DataFrame(rows).assign(**intervals.wald(model)[["low", "high"]])[COLUMNS]


def _row(c: Coefficient, estimate: float) -> dict[str, object]:
    with np.errstate(over="ignore"):
        ratio = float(np.exp(estimate))
    return {
        "term": words(c.term),
        "estimate": estimate,
        "se": c.se,
        "z": c.z,
        "p": c.p,
        "stars": stars(c.p),
        "odds_ratio": ratio,
    }


def latex(model: MixedModel) -> str:
    """Format Table 1 for a LaTeX document with the package booktabs."""
    body = [
        f"{_term_latex(c.term)} & {_estimate_latex(c, model.limit(c))} & {_number_latex(c.se)} & "
        f"{_number_latex(c.z)} & {_p_latex(c.p)} \\\\"
        for c in model.coefficients
    ]
    lines = [
        r"\begin{tabular}{lrrrr}",
        r"\toprule",
        r"Term & $\beta$ & SE & $z$ & $p$ \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _term_latex(term: str) -> str:
    return words(term).replace("_", r"\_").replace(" × ", r" $\times$ ")


def _number_latex(value: float | None) -> str:
    if value is None:
        return "--"
    text = f"{value:.2f}"
    return text.replace("-", "$-$") if float(text) else "0.00"


def _estimate_latex(c: Coefficient, estimate: float) -> str:
    if math.isinf(estimate):
        return r"$-\infty$" if estimate < 0 else r"$\infty$"
    mark = stars(c.p)
    return _number_latex(None if math.isnan(estimate) else estimate) + (f"$^{{{mark}}}$" if mark else "")


def _p_latex(p: float | None) -> str:
    return p_text(p).replace("< ", "$<$ ").replace("> ", "$>$ ").replace("–", "--")
