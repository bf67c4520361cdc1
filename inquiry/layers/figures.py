"""What several figures of questions are made of: colours of tables, limits as dotted lines."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from study import plots

MOST_ROWS = 20
"""Rows of a figure of units at most: those with the largest effects."""
SHARE_COLOURS, LOSS_COLOURS = "Blues", "RdBu"


def draw_heat(wide: pd.DataFrame, scale: str, ends: tuple[float, float], title: str) -> go.Figure:
    """Draw a table of numbers as colours, rows by columns, between two ``ends``."""
    bar = {"title": {"text": title, "side": "top"}, "orientation": "h", "thickness": 12, "y": 1, "yanchor": "bottom"}
    figure = go.Figure(
        go.Heatmap(
            z=wide.to_numpy(),
            x=list(wide.columns),
            y=list(wide.index),
            colorscale=scale,
            zmin=ends[0],
            zmax=ends[1],
            colorbar=bar,
        )
    )
    height = 220 + 22 * len(wide)
    return (
        plots.apply_layout(figure, "", percent=False)
        .update_layout(height=height, margin_t=90)
        .update_yaxes(autorange="reversed")
    )


def add_limits(figure: go.Figure, limits: pd.Series, name: str) -> go.Figure:
    """Add a dotted line for each series, in its colour and with its name, at the value that it is compared with."""
    for k, (of, limit) in enumerate(limits.items()):
        if np.isfinite(limit):
            line = plots.DOTTED | {"color": plots.PALETTE[k % len(plots.PALETTE)]}
            figure.add_scatter(
                x=figure.layout.xaxis.tickvals, y=[limit] * len(figure.layout.xaxis.tickvals), mode="lines", line=line,
                name=f"{name}, {of}", hovertemplate=f"%{{y:.3g}}<extra>{name}, {of}</extra>",
            )  # fmt: skip
    return figure


def list_in_first_order(names: pd.Series) -> list[str]:
    """List each name once, in the order in which they come."""
    return list(dict.fromkeys(names))
