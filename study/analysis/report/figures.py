"""Figure 1: how often participants respond correctly, or how they rate, by condition and trial type."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go

from study import plots
from study.analysis.responses.notices import MODES
from study.analysis.responses.ratings import tabulate_outcomes
from study.analysis.responses.reading import Responses
from study.bundle import EVERY_TYPE, TYPE_LABELS
from study.conditions import format_condition
from study.tasks.predict import TASK as PREDICT
from study.tasks.task import Task

TITLES = {
    True: "Figure 1: accuracy by condition and trial type",
    False: "Figure 1: mean level by condition and trial type",
}
"""By whether responses are right or wrong."""
SIDES: Mapping[str, str] = {
    kind: "middle left" if kind in ("adv_incorrect", "used") else "middle right" for kind in EVERY_TYPE
}
SPREAD = 0.2
HOVERED = ["condition", "low", "high", "participants", "responses"]


def accuracy_figure(data: Responses) -> tuple[go.Figure, pd.DataFrame]:
    """Draw figure 1 and return the numbers behind it."""
    numbers = tabulate_outcomes(data)
    return draw(numbers, data.task, simulated=data.has_simulated), numbers


def draw(numbers: pd.DataFrame, task: Task = PREDICT, *, simulated: bool = False) -> go.Figure:
    """Draw a table of `study.analysis.responses.ratings.tabulate_outcomes`; simulated data are marked as such.

    ``task`` says what is counted, and what chance is.
    """
    conditions = list(dict.fromkeys(numbers["condition"]))
    figure = go.Figure()
    for shift, trial_type in zip((-SPREAD, 0.0, SPREAD, 0.0, -SPREAD, SPREAD), EVERY_TYPE, strict=True):
        cell = numbers[numbers["trial_type"] == trial_type]
        if len(cell):
            figure.add_trace(_series(cell, trial_type, [conditions.index(c) + shift for c in cell["condition"]]))
    _lay_out(figure, conditions, task)
    if simulated:
        plots.mark(figure, MODES["sim"])
    return figure


def _series(cell: pd.DataFrame, trial_type: str, x: list[float]) -> go.Scatter:
    color, symbol = plots.TYPE_STYLES[trial_type]
    mean, written = ("accuracy", ".0%") if "accuracy" in cell else ("mean_level", ".2f")
    form = ".1%" if mean == "accuracy" else ".2f"
    return go.Scatter(
        x=x,
        y=cell[mean],
        error_y=plots.whiskers(cell, mean, color),
        mode="markers+text",
        cliponaxis=False,
        marker={"color": color, "size": 12, "symbol": symbol},
        name=TYPE_LABELS[trial_type],
        text=[format(value, written) for value in cell[mean]],
        textposition=SIDES[trial_type],
        textfont={"color": plots.INK, "size": 13},
        customdata=cell.assign(condition=cell["condition"].map(format_condition))[HOVERED].to_numpy(),
        hovertemplate=(
            f"%{{customdata[0]}}: %{{y:{form}}} [%{{customdata[1]:{form}}}, %{{customdata[2]:{form}}}]<br>"
            "%{customdata[3]} participants, %{customdata[4]} responses<extra>" + TYPE_LABELS[trial_type] + "</extra>"
        ),
    )


def _lay_out(figure: go.Figure, conditions: list[str], task: Task) -> None:
    if task.chance is not None:
        chance = f"chance ({task.chance:.0%})" if task.has_several else "chance"
        figure.add_hline(y=task.chance, line=plots.DOTTED, annotation_text=chance, annotation_position="top left")
    plots.apply_layout(figure, task.outcome, percent=task.is_scored)
    figure.update_xaxes(
        tickmode="array",
        tickvals=list(range(len(conditions))),
        ticktext=plots.label("condition", conditions),
        tickangle=0,
        tickfont_size=11,  # of two lines side by side, on a phone too
        range=[-0.95, len(conditions) - 0.1],
        title="Explanation shown",
        showgrid=False,
    )
    figure.update_yaxes(range=[0, 1.03] if task.is_scored else [0.9, task.count + 0.1])
