"""The main result: each contrast in percentage points with its interval, and a forest plot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.names import upper_first
from study import plots
from study.analysis.models.sentences import LEVEL, coverage_text, describe_p
from study.analysis.report import ratings
from study.analysis.responses.notices import MODES
from study.analysis.responses.outcome import find_outcome
from study.analysis.words.cells import write_rounded
from study.analysis.words.wording import write_whole_contrast

TITLES = {True: "Difference in accuracy{}<br>(percentage points)", False: "Difference in mean level{}<br>(levels)"}
ROW = {True: 28, False: 36}
"""Height of a row of the forest plot, px, by whether all contrasts are with the same condition: names have one line."""


def sentences(contrasts: pd.DataFrame, level: float = LEVEL) -> list[str]:
    """Write a sentence for each contrast of `study.analysis.planned.contrasts.table`: accuracy, difference, p."""
    write = _sentence if find_outcome(contrasts).is_scored else ratings.write_difference
    return [write(row, level) for row in contrasts.to_dict("records")]


def _sentence(row: dict[str, object], level: float) -> str:
    points, low, high, p = (_float(row[name]) for name in ("points", "points_low", "points_high", "p_holm"))
    name = write_whole_contrast(str(row["contrast"]))
    if np.isnan(points):
        return f"{name}: cannot be estimated from these data."
    accuracy = f"accuracy {_float(row['accuracy_more']):.1%} vs {_float(row['accuracy_less']):.1%}"
    difference = f"{name}: {accuracy}, {points:+.1f} percentage points".replace(" -", " −")
    if np.isnan(low):
        certain = "because a cell has only correct or only incorrect responses; a Bayesian fit has one"
        return f"{difference}; no interval, {certain}."
    corrected = describe_p(None if np.isnan(p) else p)
    interval = f"{coverage_text(level)} CI {write_rounded(low, 1)} to {write_rounded(high, 1)}"
    return f"{difference} ({interval}; Holm-corrected {corrected})."


def _float(value: object) -> float:
    return float(value)  # type: ignore[arg-type]


def forest(contrasts: pd.DataFrame, level: float = LEVEL, *, simulated: bool = False) -> go.Figure:
    """Plot each contrast in percentage points, or in levels, with its interval, grouped by trial types.

    Left of the dotted line explanations lower accuracy or levels. A condition that all are compared with is named once,
    by the axis; otherwise names have two lines, so that a phone has room for both names and intervals. Simulated data
    are marked as such.
    """
    outcome = find_outcome(contrasts)
    shown = contrasts[contrasts[outcome.difference].notna()]
    bars = pd.DataFrame({"points": shown[outcome.difference], "low": shown[outcome.low], "high": shown[outcome.high]})
    unit, form = ("points", ".1f") if outcome.is_scored else ("levels", ".2f")
    names = [write_whole_contrast(str(name)) for name in shown["contrast"]]
    reference = _find_reference(names)
    places, ticks = _place_rows(names, reference)
    color = plots.PALETTE[0]
    figure = go.Figure(
        go.Scatter(
            x=bars["points"],
            y=places,
            error_x=plots.whiskers(bars, "points", color),
            mode="markers",
            marker={"color": color, "size": 10},
            text=names,
            customdata=bars[["low", "high"]].to_numpy(),
            hovertemplate=(
                f"%{{text}}: %{{x:+{form}}} {unit} [%{{customdata[0]:{form}}}, %{{customdata[1]:{form}}}]"
                f"<extra>{coverage_text(level)} CI</extra>"
            ),
        )
    )
    figure.add_vline(x=0, line=plots.DOTTED, layer="below")
    plots.apply_layout(figure, "", percent=False)
    figure.update_layout(height=100 + ROW[bool(reference)] * len(ticks), margin={"l": 10, "r": 20, "t": 20, "b": 70})
    if simulated:
        plots.mark(figure, MODES["sim"])
    title = TITLES[outcome.is_scored].format(f"<br>from {reference}" if reference else "")
    figure.update_xaxes(title=title, gridcolor=plots.GRID, nticks=6, tickangle=0)
    return figure.update_yaxes(
        tickvals=list(ticks),
        ticktext=list(ticks.values()),
        **plots.LABELS,
        showgrid=False,
        range=[-0.6, len(ticks) - 0.4],
        title=None,
    )


def _find_reference(names: Sequence[str]) -> str:
    """Return the condition that all contrasts compare with; an empty string where there are several."""
    compared = {name.partition(", ")[0].partition(" vs ")[2] for name in names}
    return compared.pop() if len(compared) == 1 else ""


def _place_rows(names: Sequence[str], reference: str) -> tuple[list[int], dict[int, str]]:
    """Place contrasts from the top, under a heading for each group of trial types: heights, and labels by height."""
    groups: dict[str, list[str]] = {}
    for name in names:
        kinds = name.partition(", ")[2]
        groups.setdefault(upper_first(kinds), []).append(name)
    top = len(names) + len(groups) - 1
    ticks: dict[int, str] = {}
    heights: dict[str, int] = {}
    for kinds, group in groups.items():
        ticks[top - len(ticks)] = f"<b>{kinds.replace(' (', '<br>(')}</b>"
        for name in group:
            heights[name] = top - len(ticks)
            compared = name.partition(", ")[0]
            ticks[heights[name]] = compared.partition(" vs ")[0] if reference else compared.replace(" vs ", "<br>vs ")
    return [heights[name] for name in names], ticks
