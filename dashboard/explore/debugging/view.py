"""Debugging: where the AI errs in a set, with points, likely label errors, outliers, calibration and rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.names import format_name
from core.uncertainty import UNCERTAINTY_MEASURES
from dashboard.explore import picker
from dashboard.explore.debugging import assertions, calibration, points, slices
from dashboard.explore.debugging.jobs import make_noise_task
from dashboard.explore.debugging.points import Axis
from dashboard.explore.heatmaps import downloads
from dashboard.explore.uncertainty import view as uncertainty
from dashboard.explore.uncertainty.jobs import PASSES
from dashboard.shared import cache, files, numbers
from dashboard.shared.cache import Gallery
from dashboard.shared.live import get_result
from inquiry.debugging.debugging import (
    FOLDS,
    DebuggingResults,
    Judge,
    format_ordinal,
    label_evidence,
    outlier_evidence,
)
from study.workspace.spreadsheets import csv_text

BIND: Literal["query-params"] = "query-params"
POINTS, SLICES, LABELS, OUTLIERS, CALIBRATION, ASSERTIONS = SECTIONS = (
    "Points",
    "Error slices",
    "Label errors",
    "Outliers",
    "Calibration",
    "Assertions",
)
CONFIDENCE, FEATURES = PLACES = ("Confidence and uncertainty", "Feature space")
ENTROPY = "Entropy of the prediction"
BY_KIND, BY_PREDICTION, BY_LABEL, BY_NOTHING = ("Kind of error", "The AI's prediction", "Label", "Nothing")
CONFIDENT = 80
"""Probability in per cent from which an error counts as confident by default."""
HARDLY = 0.5
"""Accuracy below which the predictions should not judge labels."""
JUDGES: dict[Judge, str] = {
    "predictions": "The AI's predictions",
    "features": "Linear probe",
    "both": "Both agree",
}

READER = "A linear probe of its features, trained without the image it judges, is also valid on training images."
NO_READER = f"There is no linear probe as a second judge, because some label has fewer than {FOLDS} images."

OnPick = Callable[[int], None]


def choose_part() -> str:
    """Choose one of `SECTIONS`, above the controls, which a phone hides in a drawer."""
    part: str = st.segmented_control(
        "Part", SECTIONS, default=POINTS, required=True, key="part", bind=BIND, label_visibility="collapsed", wrap=True
    )
    return part


def show(
    section: str, results: DebuggingResults, model: str, name: str, picked: OnPick, controls: DeltaGenerator
) -> None:
    """Show one of `SECTIONS` of the set ``name``; a click on an image is ``picked``."""
    st.header(section, anchor=False)
    gallery = Gallery(results.images, results.predictions, results.categories)
    if section == POINTS:
        with controls.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
            chosen = _choose_points(results)
        _show_points(results, gallery, (model, name), chosen, picked)
    elif section == SLICES:
        slices.show(results, gallery, name, picked)
    elif section == LABELS:
        _labels(results, gallery, name, picked)
    elif section == OUTLIERS:
        _outliers(results, gallery, name, picked)
    elif section == ASSERTIONS:
        assertions.show(cache.load_classifier(model), results, gallery, name, picked)
    else:
        calibration.show(cache.load_classifier(model), results, name)
    downloads.show_downloads(lambda: _file(results, name))


def _file(results: DebuggingResults, name: str) -> None:
    content = results.table()
    files.offer_download("All images (CSV)", lambda: csv_text(content), f"{name}.debugging.csv", "text/csv")


@dataclass(frozen=True)
class _PointOptions:
    """What the points show: their place, the noise of the uncertainty with its measure, and the group of each."""

    place: str
    noise: str
    measure: str
    groups: list[str]


def _choose_points(results: DebuggingResults) -> _PointOptions:
    places = PLACES if results.places is not None else PLACES[:1]
    place = st.selectbox("Axes", places, key="place", bind=BIND, width=280)
    noise = _noise_box() if place == CONFIDENCE else ENTROPY
    measure = _measure_box() if noise != ENTROPY else ""
    return _PointOptions(place, noise, measure, _groups(results))


def _show_points(
    results: DebuggingResults, gallery: Gallery, names: tuple[str, str], how: _PointOptions, picked: OnPick
) -> None:
    """Draw every image as a point, and below them the images; ``names`` are those of the network and the set."""
    model, name = names
    axes = _plane(results) if how.place == FEATURES else _sure(results, model, how.noise, how.measure)
    if axes is None:
        return
    x, y = axes
    chosen = st.plotly_chart(
        points.figure(results, x, y, how.groups),
        key=f"points_{model}_{name}_{x.title}_{y.title}",  # elsewhere the line that was drawn means nothing
        on_select="rerun",
        selection_mode=("points", "box", "lasso"),
        config={"displaylogo": False},
    )
    among = {int(point["customdata"][0]) for point in chosen.selection.points}
    if not among:
        st.caption("Draw around points, or tap one, to see only those images. Double-click to clear the selection.")
    picker.show_whole_set(gallery, name, picked, among or None)


def _sure(results: DebuggingResults, model: str, noise: str, measure: str) -> tuple[Axis, Axis] | None:
    """Return confidence and uncertainty; None until the predictions under noise are computed."""
    confidence = Axis("Confidence: probability of the prediction", results.predictions.probability)
    if noise == ENTROPY:
        return confidence, Axis("Entropy of the prediction, bits", results.predictions.entropy)
    task = make_noise_task(cache.load_classifier(model), noise, results.images)
    table: pd.DataFrame | None = get_result(task, "_noise")
    if table is None:
        return None
    unit = uncertainty.UNITS.get(measure, 1.0)
    error = table[f"{measure}_error"] / unit
    st.caption(f"Standard error from the {PASSES} passes: median {error.median():.3f}, maximum {error.max():.3f}.")
    return confidence, Axis(
        f"{format_name(measure)} under {format_name(noise).lower()}{', bits' if measure in uncertainty.UNITS else ''}",
        table[measure].to_numpy() / unit,
    )


def _plane(results: DebuggingResults) -> tuple[Axis, Axis]:
    assert results.places is not None
    assert results.shares is not None
    first, second = (
        Axis(f"Principal component {k + 1}: {results.shares[k]:.0%} of the variance", results.places[:, k])
        for k in (0, 1)
    )
    return first, second


def _noise_box() -> str:
    return st.selectbox(
        "Uncertainty",
        [ENTROPY, *uncertainty.OFFERED],
        format_func=lambda name: name if name == ENTROPY else f"{format_name(name)}, {PASSES} passes",
        key="uncertainty",
        bind=BIND,
        width=300,
    )


def _measure_box() -> str:
    return st.selectbox(
        "Measure", list(UNCERTAINTY_MEASURES), format_func=format_name, key="uncertainty.measure", bind=BIND, width=200
    )


def _groups(results: DebuggingResults) -> list[str]:
    """Return the group of each image by the chosen colouring; error types only if labels are known."""
    known = bool(results.has_known_label.any())
    offered = [*([BY_KIND] if known else []), BY_PREDICTION, BY_LABEL, BY_NOTHING]
    by = st.selectbox("Colour by", offered, key="colour", bind=BIND, width=180)
    if by == BY_KIND:
        confident = st.slider("Confident from, %", 1, 100, CONFIDENT, key="confident", bind=BIND, width=180)
        return points.kinds(results, confident / 100)
    if by == BY_NOTHING:
        return [points.ALL] * len(results.images)
    names = results.class_names[results.predictions.predicted] if by == BY_PREDICTION else results.label_names
    return points.commonest([str(name) for name in names])


def _labels(results: DebuggingResults, gallery: Gallery, name: str, picked: OnPick) -> None:
    if results.labels is None:
        st.info(
            "Finding label errors needs a network that has at least two of the labels as classes and ends in one "
            "linear layer. Name the folders after the classifier's classes."
        )
        return
    right = float(results.predictions.correct[results.has_known_label].mean())
    judge = _judge_box(results, right)
    likely = results.find_label_errors(judge)
    st.caption(
        f"Likely label errors by confident learning: {len(likely):,} of {int(results.has_known_label.sum()):,}. "
        "The predictions are evidence only for images the AI was not trained on, and cannot tell a "
        f"wrong label from a confident error; {right:.1%} of the predictions for these images are correct. "
        f"{NO_READER if results.read is None else READER} Inspect the images, the likeliest errors first, and "
        "the labels of their nearest neighbours in the AI's features."
    )
    if right < HARDLY:
        st.warning(
            "The AI is wrong about most of these images, so it is a poor judge of their labels. An image listed here "
            "is more likely an error of the AI than a wrong label."
        )
    if likely:
        picker.show_ranked(gallery, f"{name}_labels_{judge}", likely, picked, lambda i: label_evidence(results, i))
        with st.expander("Data table"):
            numbers.table(results.table().iloc[likely], f"{name}.labels")


def _judge_box(results: DebuggingResults, right: float) -> Judge:
    """Choose the method that finds label errors, with counts; the predictions if there is no other.

    Predictions of which fewer than `HARDLY` are ``right`` do not judge alone unless they are chosen.
    """
    if results.read is None:
        return "predictions"
    judge: Judge = st.segmented_control(
        "Judged by",
        list(JUDGES),
        format_func=lambda one: f"{JUDGES[one]}: {len(results.find_label_errors(one)):,}",
        default="predictions" if right >= HARDLY else "both",
        required=True,
        key="judge",
        bind=BIND,
    )
    return judge


def _outliers(results: DebuggingResults, gallery: Gallery, name: str, picked: OnPick) -> None:
    if results.near is None:
        st.info("Finding outliers needs at least two images, and a network that ends in one linear layer.")
        return
    ranked, place = results.outliers(), format_ordinal(results.near.indices.shape[1])
    st.caption(
        f"Farthest first, by the distance to the {place} nearest image in the AI's features "
        "(0: the same; 1.41: nothing in common). Few training images may resemble them, or they do not belong here."
    )
    picker.show_ranked(gallery, f"{name}_outliers", ranked, picked, lambda i: outlier_evidence(results, i))
    with st.expander("Data table"):
        numbers.table(results.table().iloc[ranked], f"{name}.outliers")
