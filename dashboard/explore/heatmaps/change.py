"""How a change of an image changes the prediction: as bars, and in words."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
from torch import Tensor

TOP = 5
BARS = {"Before": "#8a90a0", "After": "#5265d9"}
"""Colours of the bars, which light and dark pages show (contrast 3)."""


def draw_change(before: Tensor, after: Tensor, names: Sequence[str]) -> go.Figure:
    """Draw the probabilities (K,) of the likeliest classes before and after."""
    top = (before + after).argsort(descending=True)[:TOP].tolist()
    figure = go.Figure()
    for (label, colour), values in zip(BARS.items(), (before, after), strict=True):
        shown = [float(values[k]) for k in top]
        figure.add_bar(
            y=[names[k] for k in top], x=shown, orientation="h", name=label, marker_color=colour,
            text=[f"{value:.0%}" for value in shown], textposition="outside", cliponaxis=False, hoverinfo="skip",
        )  # fmt: skip
    figure.update_yaxes(autorange="reversed", automargin=True)
    figure.update_xaxes(range=[0, 1.15], tickvals=[0, 0.25, 0.5, 0.75, 1], tickformat=".0%")
    legend = {"orientation": "h", "yanchor": "bottom", "y": 1}
    figure.update_layout(height=300, margin={"l": 0, "r": 0, "t": 0, "b": 0}, barmode="group", legend=legend)
    return figure


def describe_change(before: Tensor, after: Tensor, names: Sequence[str]) -> str:
    """Describe the new prediction in a sentence, from the probabilities (K,) before and after."""
    old, new = int(before.argmax()), int(after.argmax())
    sure = f"{float(after[new]):.0%}"
    if new == old:
        return f"The AI still predicts {names[new]} ({sure})."
    return f"The AI now predicts {names[new]} ({sure}), no longer {names[old]}."
