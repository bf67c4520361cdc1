"""Calibration: accuracy by confidence, before and after temperature scaling."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from core.network.classifier import Classifier
from core.uncertainty.reliability import Detection
from dashboard.explore.debugging.jobs import make_calibration_task
from dashboard.shared import numbers
from dashboard.shared.live import draw_when_ready
from dashboard.shared.messages import escape_markdown
from inquiry.debugging.calibration import (
    COOLED,
    GIVEN,
    LEAST,
    CalibrationResults,
    ConfidenceCalibration,
    Gap,
    explain_few,
)
from inquiry.debugging.debugging import DebuggingResults
from study import plots
from study.analysis.words.cells import write_rounded

NONE = "–"
COUNTS = 0.2
"""Share of the figure's height for the number of predictions in each bin."""


def show(classifier: Classifier, results: DebuggingResults, name: str) -> None:
    """Show the curve, the measures and their meaning; without labels, why there are none."""
    known = int(results.has_known_label.sum())
    if known < LEAST:
        st.info(explain_few(known))
        return
    task = make_calibration_task(classifier, results.images)
    draw_when_ready(task, lambda measured: _draw_result(measured, name), "_calibration")


def _draw_result(results: CalibrationResults, name: str) -> None:
    left, right = st.columns([1.4, 1], gap="large")
    with left:
        st.plotly_chart(figure(results), key="calibration", config={"displayModeBar": False})
    with right:
        st.table(make_measure_table(results), border="horizontal", hide_index=True)
        for sentence in results.lacking:
            st.info(escape_markdown(sentence))
    st.caption(describe_calibration(results))
    with st.expander("Data table"):
        numbers.table(results.bins(), f"{name}.calibration")
        numbers.table(results.measures(), f"{name}.calibration.measures")


def figure(results: CalibrationResults) -> go.Figure:
    """Draw accuracy against confidence by bin, with 95% intervals and the diagonal; below, the predictions per bin."""
    table = results.bins()
    drawn = plots.curves(table, x="confidence", y="accuracy", by="predictions", title="Accuracy", x_title="Confidence")
    _draw_counts(drawn, table, len(results.predictions))
    shared = {"range": [-0.02, 1.02], "showgrid": False, "zeroline": False, "tickformat": ".0%"}
    drawn.update_layout(
        xaxis={**shared, "anchor": "y2"},
        yaxis={"range": [-0.02, 1.02], "domain": [COUNTS + 0.05, 1]},
        yaxis2={"domain": [0, COUNTS], "title": "images", "gridcolor": plots.GRID, "nticks": 3, "rangemode": "tozero"},
        barmode="overlay",
        margin={"l": 0, "r": 24, "t": 10, "b": 0},
    )
    return plots.diagonal(drawn)


def _draw_counts(drawn: go.Figure, table: pd.DataFrame, groups: int) -> None:
    """Draw the number of predictions in each bin, those of the groups next to each other."""
    for k, (_, part) in enumerate(table.groupby("predictions", sort=False)):
        wide = (part["to"] - part["from"]) / groups
        drawn.add_bar(
            x=part["from"] + wide * (k + 0.5),
            y=part["images"],
            width=wide * 0.9,
            marker={"color": plots.PALETTE[k]},
            yaxis="y2",
            showlegend=False,
            hovertemplate="%{y:,} images<extra></extra>",
        )


def make_measure_table(results: CalibrationResults) -> pd.DataFrame:
    """Return one row per measure, before and after temperature scaling; accuracy, which is unchanged, once."""
    right = results.accuracy
    rows = [("Accuracy", f"{right.value:.1%} {_limits(right.low, right.high)}", "the same")]
    for measure, told in MEASURE_FORMATS.items():
        rows.append((measure, told(results.given), NONE if results.cooled is None else told(results.cooled)))
    halves = NONE if results.temperatures is None else " and ".join(f"{one:.2f}" for one in results.temperatures)
    rows.append(("Temperature", "1", halves))
    if results.cooled is None:
        rows = [(measure, before, NONE) for measure, before, _ in rows]
    return pd.DataFrame(rows, columns=["Measure", GIVEN.capitalize(), COOLED.capitalize()])


def _format_detection(detection: Detection | None) -> str:
    if detection is None:
        return NONE
    return f"{detection.area:.3f} {_limits(*detection.interval, '.3f')}" if detection.error else f"{detection.area:.3f}"


def _limits(low: float, high: float, form: str = ".1%") -> str:
    return f"({low:{form}} to {high:{form}})"


MEASURE_FORMATS: dict[str, Callable[[ConfidenceCalibration], str]] = {
    "Mean confidence": lambda one: f"{one.confidence:.1%}",
    "Expected calibration error": lambda one: f"{one.calibration.expected_error:.3f}",
    "Brier score, 0 to\u00a02": lambda one: f"{one.calibration.brier:.3f}",
    "Error detection, AUROC": lambda one: _format_detection(one.detection),
}


def describe_calibration(results: CalibrationResults) -> str:
    """Describe what the numbers mean."""
    said = (
        f"On {results.count:,} images the AI's mean confidence is {results.given.confidence:.1%} and its accuracy "
        f"{results.accuracy.value:.1%}: {_verdict(results.given.gap)}."
    )
    if results.cooled is not None and results.temperatures is not None:
        said += (
            f" After temperature scaling it is {results.cooled.confidence:.1%}: {_verdict(results.cooled.gap)}. "
            "A temperature above 1 lowers every confidence, one below 1 raises it; predictions do not change. To avoid "
            "optimism, each half of the images is scaled by the temperature fitted to the other half."
        )
    return (
        f"{said} Lines at the points are 95% intervals; below the diagonal the AI is overconfident. With few images "
        "the expected calibration error is above 0 by chance alone. AUROC: how often an error has lower confidence "
        "than a correct prediction; 0.5 is chance."
    )


def _verdict(gap: Gap) -> str:
    """Say whether the AI is over- or underconfident, by how much, or neither beyond chance."""
    limits = f"95%: {_points(gap.low)} to {_points(gap.high)}"
    if gap.low <= 0 <= gap.high:
        return f"neither over- nor underconfident beyond chance ({_points(gap.value)} percentage points, {limits})"
    way = "over" if gap.value > 0 else "under"
    return f"{way}confident by {_points(abs(gap.value))} percentage points ({limits})"


def _points(share: float) -> str:
    return write_rounded(100 * share, 1)
