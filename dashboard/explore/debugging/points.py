"""All images of a set as points, coloured by kind of error, prediction or label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go
from numpy.typing import NDArray

from inquiry.debugging.debugging import DebuggingResults
from study.plots import INK, MARKS, PALETTE

RIGHT, OTHER_ERROR, CONFIDENT, UNKNOWN = KINDS = ("Correct", "Other error", "Confident error", "True class unknown")
OTHER, ALL = "Others", "Images"
KIND_STYLES = {
    RIGHT: ("#0072B2", "circle"),
    OTHER_ERROR: ("#E69F00", "square"),
    CONFIDENT: ("#D55E00", "diamond"),
    UNKNOWN: (INK, "circle-open"),
    OTHER: (INK, "circle-open"),
    ALL: ("#0072B2", "circle"),
}
"""Colours of Okabe & Ito (2008) as in the figures of the results, each with a mark of its own."""
HOVER_TEMPLATE = "%{customdata[3]}<br>AI: %{customdata[1]}<br>label: %{customdata[2]}<extra></extra>"
"""The text at a point under the mouse."""


@dataclass(frozen=True)
class Axis:
    """The values of the images along one axis."""

    title: str
    values: NDArray[np.floating]


def kinds(results: DebuggingResults, confident: float) -> list[str]:
    """Classify each image as correct or a kind of error; errors are confident from this probability on."""
    predictions = results.predictions
    errors = np.where(predictions.probability >= confident, CONFIDENT, OTHER_ERROR)
    known = np.where(predictions.correct, RIGHT, errors)
    return [str(kind) for kind in np.where(~results.has_known_label, UNKNOWN, known)]


def commonest(names: Sequence[str]) -> list[str]:
    """Return the names, with those that have no colour left as `OTHER`."""
    kept = set(pd.Series(names).value_counts().index[: len(PALETTE)])
    return [name if name in kept else OTHER for name in names]


def figure(results: DebuggingResults, x: Axis, y: Axis, groups: Sequence[str]) -> go.Figure:
    """Draw the points, each with its image's number for selection; many are drawn by WebGL."""
    order = _order(groups)
    looks = KIND_STYLES | dict(
        zip([g for g in order if g not in KIND_STYLES], zip(PALETTE, MARKS, strict=True), strict=False)
    )
    drawn = px.scatter(
        _frame(results, x, y, groups),
        x="x",
        y="y",
        color="group",
        symbol="group",
        color_discrete_map={group: looks[group][0] for group in order},
        symbol_map={group: looks[group][1] for group in order},
        category_orders={"group": order},
        custom_data=["index", "says", "label", "image"],
        labels={"x": x.title, "y": y.title, "group": ""},
    )
    drawn.update_traces(marker={"size": 8, "opacity": 0.9}, hovertemplate=HOVER_TEMPLATE)
    drawn.update_layout(
        height=460,
        margin={"l": 0, "r": 0, "t": 10, "b": 0},
        dragmode="lasso",
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "title": None},
        showlegend=len(order) > 1,
    )
    return drawn


def _frame(results: DebuggingResults, x: Axis, y: Axis, groups: Sequence[str]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "index": np.arange(len(results.images)),
            "x": x.values,
            "y": y.values,
            "group": list(groups),
            "says": results.class_names[results.predictions.predicted],
            "label": results.label_names,
            "image": results.images.ids,
        }
    )


def _order(groups: Sequence[str]) -> list[str]:
    """Return the groups in the order of the legend: as declared, or the most frequent first, and others last."""
    there = list(pd.Series(groups).value_counts().index)
    return sorted(
        there, key=lambda group: KINDS.index(group) if group in KINDS else there.index(group) + 99 * (group == OTHER)
    )
