"""A fitted model as text, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf, isnan, sqrt

from study.analysis.models import intervals
from study.analysis.models.records import Coefficient, MixedModel
from study.analysis.models.sentences import p_text

SMALL = 1e-3
"""Numbers below this are printed with three significant digits instead of four decimals."""


def lines(model: MixedModel) -> list[str]:
    """Return coefficients, thresholds, random effects with their correlations, the likelihood, and the warnings."""
    statistic = "t" if any(c.df is not None for c in model.coefficients) else "z"
    head = ["term", "estimate", "SE", *(["df"] if statistic == "t" else []), statistic, "p"]
    rows = [_coefficient(model, c, statistic) for c in model.coefficients]
    if model.thresholds:
        head, rows = [*head, "odds ratio", "95% CI"], _add_odds_ratios(model, rows)
    text = align_columns([head, *rows])
    text += [f"threshold {c.term}: {write_number(c.estimate)} (SE {write_number(c.se)})" for c in model.thresholds]
    for effect in model.random:
        se = "" if effect.se is None else f" (SE {write_number(effect.se)})"
        text.append(f"SD {effect.group} {effect.term}: {write_number(effect.sd)}{se}")
    for pair in model.correlations():
        value = "none" if pair["correlation"] is None else f"{pair['correlation']:.3f}"
        text.append(f"correlation {pair['group']} {' and '.join(pair['terms'])}: {value}")
    if model.family == "gaussian":
        text.append(f"SD residual: {write_number(sqrt(model.dispersion))}")
    name = "REML criterion" if model.reml else "logLik"
    text.append(f"{name} {model.loglik:.4f}, df {model.df}, n {model.n}, AIC {model.aic:.2f}, BIC {model.bic:.2f}")
    if model.thresholds:
        text.append("An odds ratio is that of a higher level, the same at each threshold (proportional odds).")
    return [*text, *model.messages]


def _add_odds_ratios(model: MixedModel, rows: Sequence[list[str]]) -> list[list[str]]:
    """Add the odds ratio of each coefficient and its interval to its row."""
    ratios = intervals.odds_ratios(model).itertuples(index=False)
    return [
        [*row, f"{one.odds_ratio:.3f}", f"[{one.low:.3f}, {one.high:.3f}]"]
        for row, one in zip(rows, ratios, strict=True)
    ]


def _coefficient(model: MixedModel, c: Coefficient, statistic: str) -> list[str]:
    """Return an estimate that goes to infinity as such; a p as articles print it."""
    df = [] if statistic == "z" else ["–" if c.df is None else f"{c.df:.1f}"]
    return [c.term, write_number(model.limit(c)), write_number(c.se), *df, write_number(c.z), p_text(c.p)]


def write_number(value: float | None) -> str:
    """Write a number with four decimals, a small one with three digits, a missing one as a dash."""
    if value is None or isnan(value):
        return "–"
    if isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.4f}" if abs(value) >= SMALL or value == 0 else f"{value:.3g}"


def align_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align rows of cells in columns, the first to the left and the others to the right."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    made = []
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        made.append("  ".join([row[0].ljust(widths[0]), *cells[1:]]))
    return made
