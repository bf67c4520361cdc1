"""Plain plots of tables: one look for all, colours and marks that colour-blind readers tell apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from study.bundle import TYPE_LABELS
from study.conditions import format_condition

INK = "#767676"
"""Mid-grey: contrast 4.5:1 on white and on black alike, because the background is the page's."""
# Okabe & Ito (2008), those of contrast enough on white and on black, each with a mark of its own.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKS = ("circle", "diamond", "square", "triangle-up", "cross", "x")
TYPE_STYLES = {
    "adv_incorrect": ("#D55E00", "diamond"),
    "std_incorrect": ("#E69F00", "square"),
    "std_correct": ("#0072B2", "circle"),
    "unit": ("#0072B2", "circle"),
    "used": ("#0072B2", "circle"),
    "unused": ("#D55E00", "diamond"),
}
"""Colour and mark of each trial type, the same in every figure."""
GRID = "rgba(127,127,127,.25)"
DOTTED = {"color": INK, "dash": "dot", "width": 1.5}
"""The line of what is compared with: chance, nothing, agreement."""
LABELS: Mapping[str, Any] = {"tickfont_size": 11, "ticks": "outside", "tickcolor": "rgba(0,0,0,0)"}
"""Of a vertical axis with words, a little away from the plot."""
_SPREAD = 0.5


def intervals(
    table: pd.DataFrame, *, x: str, y: str, by: str, title: str, line: float | None = None, percent: bool = False
) -> go.Figure:
    """Plot estimates with intervals (columns ``low``, ``high``), side by side for each value of `by`."""
    values, series = list(dict.fromkeys(table[x])), list(dict.fromkeys(table[by]))
    figure = go.Figure()
    for k, (value, name) in enumerate(zip(series, label(by, series), strict=True)):
        part = table[table[by] == value]
        shift = 0.0 if len(series) < 2 else _SPREAD * (k / (len(series) - 1) - 0.5)
        at = [values.index(v) + shift for v in part[x]]
        figure.add_trace(_points(part, at, y, name, style(by, value, k), percent))
    if line is not None:
        figure.add_hline(y=line, line=DOTTED)
    angle = 0 if x == "condition" else None  # two short lines; names of layers need the slope
    figure.update_xaxes(
        tickmode="array",
        tickvals=list(range(len(values))),
        ticktext=label(x, values),
        tickangle=angle,
        showgrid=False,
    )
    return apply_layout(figure, title, percent)


def curves(
    table: pd.DataFrame, *, x: str, y: str, by: str, title: str, x_title: str, percent: bool = True
) -> go.Figure:
    """Plot a line with intervals (columns ``low``, ``high``) for each value of `by`."""
    figure = go.Figure()
    for k, (value, part) in enumerate(table.groupby(by, sort=False, observed=True)):
        (name,) = label(by, [value])
        trace = _points(part, list(part[x]), y, name, style(by, value, k), percent)
        trace.update(mode="lines+markers", line={"color": trace.marker.color, "width": 2})
        figure.add_trace(trace)
    figure.update_xaxes(title=x_title, showgrid=False)
    return apply_layout(figure, title, percent)


def scatter(table: pd.DataFrame, *, x: str, y: str, by: str, text: str, x_title: str, title: str) -> go.Figure:
    """Plot one mark for each row, named on hovering."""
    figure = go.Figure()
    for k, (value, part) in enumerate(table.groupby(by, sort=False, observed=True)):
        (name,) = label(by, [value])
        color, symbol = style(by, value, k)
        marker = {"color": color, "symbol": symbol, "size": 9, "opacity": 0.85}
        figure.add_trace(go.Scatter(x=part[x], y=part[y], mode="markers", marker=marker, name=name, text=part[text]))
    figure.update_xaxes(title=x_title, showgrid=False)
    return apply_layout(figure, title, percent=True)


def style(column: str, value: object, k: int) -> tuple[str, str]:
    """Return the colour and the mark of a series, the ``k``-th of its figure: trial types have their own."""
    own = TYPE_STYLES.get(str(value)) if column == "trial_type" else None
    return own or (PALETTE[k % len(PALETTE)], MARKS[k % len(MARKS)])


def label(column: str, values: Sequence[object]) -> list[str]:
    """Write the values of a column as a figure's labels: conditions in words, on two lines if they are two words."""
    if column == "trial_type":
        return [TYPE_LABELS[str(value)] for value in values]
    if column != "condition":
        return [str(value) for value in values]
    return [format_condition(str(value)).replace(" ", "<br>", 1) for value in values]


def mark(figure: go.Figure, words: str) -> None:
    """Write above a figure what it must not be taken for, also where it is saved or pasted elsewhere."""
    title = {"text": words, "font": {"size": 15, "color": INK}, "x": 0, "y": 0.98}
    figure.update_layout(title=title, margin={"t": (figure.layout.margin.t or 0) + 45})


def diagonal(figure: go.Figure) -> go.Figure:
    """Add the line on which both axes are equal."""
    figure.add_trace(go.Scatter(x=[0, 1], y=[0, 1], mode="lines", line=DOTTED, showlegend=False, hoverinfo="skip"))
    return figure


def _points(
    part: pd.DataFrame, at: Sequence[float], y: str, name: str, look: tuple[str, str], percent: bool
) -> go.Scatter:
    color, symbol = look
    form = ".1%" if percent else ".3g"
    return go.Scatter(
        x=list(at),
        y=part[y].to_numpy(dtype=np.float64),
        error_y=whiskers(part, y, color),
        mode="markers",
        marker={"color": color, "size": 11, "symbol": symbol},
        name=name,
        customdata=part[["low", "high"]].to_numpy(),
        hovertemplate=f"%{{y:{form}}} [%{{customdata[0]:{form}}}, %{{customdata[1]:{form}}}]<extra>{name}</extra>",
    )


def whiskers(part: pd.DataFrame, y: str, color: str) -> dict[str, object]:
    """Draw the bars of the intervals (columns ``low``, ``high``) about the column ``y``."""
    middle = part[y].to_numpy(dtype=np.float64)
    return {
        "type": "data",
        "symmetric": False,
        "array": part["high"].to_numpy(dtype=np.float64) - middle,
        "arrayminus": middle - part["low"].to_numpy(dtype=np.float64),
        "color": color,
        "thickness": 2,
        "width": 5,
    }


def apply_layout(figure: go.Figure, title: str, percent: bool) -> go.Figure:
    """Apply the layout that all plots share; ``title`` is that of the vertical axis."""
    figure.update_layout(
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": INK, "size": 14},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 60, "r": 20, "t": 50, "b": 50},
        height=430,
    )
    figure.update_xaxes(automargin=True, zeroline=False)
    figure.update_yaxes(
        title=title, gridcolor=GRID, zeroline=False, automargin=True, tickformat=".0%" if percent else None
    )
    return figure
