"""The main result: each contrast in percentage points with its interval, and a forest plot."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from study.analysis import plots
from study.analysis.responses import MODES
from study.analysis.sentences import p_text
from study.analysis.wording import write_contrast

LEVEL = 0.05
"""The p-value below which a test counts as evidence, unless a plan sets another."""
ROW = 48
"""Height of one contrast in the forest plot, px."""


def alpha_text(level: float) -> str:
    """Format a significance level as articles print it: ``".05"``, ``".0146"``."""
    return f"{level:.4f}".rstrip("0").removeprefix("0")


def coverage_text(level: float) -> str:
    """Format the coverage of intervals at a significance level: ``"95%"``, ``"99%"``."""
    return f"{100 * (1 - level):.4g}%"


def words(contrast: str) -> str:
    """Write a contrast in words: ``"Saliency maps vs no explanation, all trials"``."""
    return write_contrast(contrast) + ("" if ", " in contrast else ", all trials")


def sentences(contrasts: pd.DataFrame, level: float = LEVEL) -> list[str]:
    """Write a sentence for each contrast (of `study.analysis.contrasts.table`): accuracy, difference, interval, p."""
    return [_sentence(row, level) for row in contrasts.to_dict("records")]


def _sentence(row: dict[str, object], level: float) -> str:
    points, low, high, p = (_float(row[name]) for name in ("points", "points_low", "points_high", "p_holm"))
    name = words(str(row["contrast"]))
    if np.isnan(points):
        return f"{name}: cannot be estimated from these data."
    accuracy = f"accuracy {_float(row['accuracy_more']):.0%} vs {_float(row['accuracy_less']):.0%}"
    difference = f"{name}: {accuracy}, {points:+.1f} percentage points".replace(" -", " −")
    if np.isnan(low):
        return f"{difference}; no interval, because a cell has only correct or only incorrect responses."
    text = p_text(None if np.isnan(p) else p)
    text = text if text[0] in "<>–" else f"= {text}"
    interval = f"{coverage_text(level)} CI {low:.1f} to {high:.1f}".replace("-", "−")
    return f"{difference} ({interval}; Holm-corrected p {text})."


def _float(value: object) -> float:
    return float(value)  # type: ignore[arg-type]


def forest(contrasts: pd.DataFrame, level: float = LEVEL, *, simulated: bool = False) -> go.Figure:
    """Plot each contrast in percentage points with its interval; left of the dotted line explanations lower accuracy.

    Names are written above the intervals, so that a phone has room for both; simulated data are marked as such.
    """
    shown = contrasts[contrasts["points"].notna()].iloc[::-1]
    bars = pd.DataFrame({"points": shown["points"], "low": shown["points_low"], "high": shown["points_high"]})
    color, places = plots.PALETTE[0], list(range(len(bars)))
    names = [words(str(name)) for name in shown["contrast"]]
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
                "%{text}: %{x:+.1f} points [%{customdata[0]:.1f}, %{customdata[1]:.1f}]"
                f"<extra>{coverage_text(level)} CI</extra>"
            ),
        )
    )
    for place, name in zip(places, names, strict=True):
        figure.add_shape(
            type="line", x0=0, x1=0, y0=place - 0.38, y1=place + 0.16, line=plots.DOTTED
        )  # not through names
        figure.add_annotation(
            x=0, xref="paper", xanchor="left", y=place, yshift=17, text=name, showarrow=False, font={"size": 11}
        )
    plots.apply_layout(figure, "", percent=False)
    figure.update_layout(height=120 + ROW * len(places), margin={"l": 10, "r": 20, "t": 20, "b": 50})
    if simulated:
        plots.mark(figure, MODES["sim"])
    figure.update_xaxes(
        title="Difference in accuracy, percentage points", gridcolor=plots.GRID, zeroline=False, nticks=6, tickangle=0
    )
    return figure.update_yaxes(
        showticklabels=False, showgrid=False, range=[-0.6, len(places) - 0.1], title=None, automargin=False
    )
