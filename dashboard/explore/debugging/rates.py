"""A figure of shares with their intervals, one row each: of rules that are broken, and of errors in slices."""

from __future__ import annotations

import textwrap

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard.explore.figures import DELETION
from study import plots

WIDE = 26
"""Letters in a line of a name."""
LINE_PX = 18


def draw_rates(table: pd.DataFrame, title: str, *, of_all: float | None = None, wide: int = WIDE) -> go.Figure:
    """Draw the ``share`` of each row with its interval; dotted, that of all images.

    Parameters
    ----------
    table
        Columns ``name``, ``share``, ``low``, ``high``, ``count`` and ``of``.
    """
    names = [textwrap.wrap(name, wide) for name in table["name"]]
    figure = go.Figure(_draw_bars(table, ["<br>".join(lines) for lines in names]))
    if of_all is not None:
        figure.add_vline(x=of_all, line=plots.DOTTED)
    figure.update_layout(
        height=90 + sum(max(56, LINE_PX * (len(lines) + 1)) for lines in names),
        margin={"l": 0, "r": 20, "t": 10, "b": 0},
        xaxis={"title": title, "tickformat": ".0%", "rangemode": "tozero", "gridcolor": plots.GRID},
        yaxis={"autorange": "reversed"},
    )
    return figure


def _draw_bars(table: pd.DataFrame, names: list[str]) -> go.Bar:
    share = table["share"].to_numpy()
    return go.Bar(
        x=share,
        y=names,
        orientation="h",
        marker={"color": DELETION},
        error_x={
            "symmetric": False,
            "array": np.maximum(table["high"] - share, 0),
            "arrayminus": np.maximum(share - table["low"], 0),
            "color": "#777",
        },
        customdata=table[["count", "of"]],
        hovertemplate="%{customdata[0]:,} of %{customdata[1]:,} images: %{x:.1%}<extra></extra>",
    )
