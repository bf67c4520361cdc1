"""The figure of the question `memorisation`: what a network learns by epoch, from true and from modified data."""

from __future__ import annotations

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from core.names import format_name
from study import plots

RECORDED = {
    "training": "Training images",
    "held_out": "Held-out images",
    "coarse": "Low frequencies",
    "fine": "High frequencies",
    "critical": "Near another class",
    "gini": "Gini coefficient",
}
"""The measures of the record, as the panels name them: two side by side on a phone."""


def memorisation(table: pd.DataFrame) -> go.Figure:
    """Draw the record of each training by epoch, one panel for each measure, with chance as a dotted line."""
    named = table.rename(columns=RECORDED).assign(kind=table["kind"].map(format_name))
    long = named.melt(["kind", "epoch"], list(RECORDED.values()), "measure", "value")
    figure = px.line(
        long,
        x="epoch",
        y="value",
        color="kind",
        facet_col="measure",
        facet_col_wrap=2,
        markers=True,
        color_discrete_sequence=plots.PALETTE,
    )
    figure.for_each_annotation(lambda panel: panel.update(text=panel.text.partition("=")[2]))
    for row in (2, 3):  # rows are counted from below: those of the accuracies
        figure.add_hline(y=float(table["chance"].iloc[0]), line=plots.DOTTED, row=row, col="all")
    figure = plots.apply_layout(figure, "", percent=True).update_layout(height=740, margin_t=110)
    figure.update_layout(legend={"title": None, "y": 1.06}).update_xaxes(title_text="Epoch", row=1)
    figure.update_yaxes(title=None, range=[-0.03, 1.03])
    return figure.update_yaxes(tickformat=".1f", showticklabels=True, row=1, col=2)  # the Gini coefficient: no share
