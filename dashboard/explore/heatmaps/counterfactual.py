"""The few cells of an image that, exchanged with those of another image of the set, change the prediction."""

from __future__ import annotations

from typing import Literal

import numpy as np
import streamlit as st
from torch import Tensor

from core.attribution.cost import Cost
from core.network.classifier import Classifier
from core.robustness.counterfactual import GRID, PLACES, Counterfactual, find_counterfactual
from core.types import Progress
from dashboard.explore.heatmap_jobs import estimate_seconds
from dashboard.explore.heatmaps import generated
from dashboard.explore.images import ClassifiedImage
from dashboard.shared import cache
from dashboard.shared.cache import Gallery
from dashboard.shared.keys import digest, tensor_digest
from dashboard.shared.live import await_result, draw_when_ready
from dashboard.shared.messages import escape_markdown
from dashboard.shared.tasks import Task
from inquiry.counterfactuals.counterfactuals import describe_counterfactual, draw_counterfactual

BIND: Literal["query-params"] = "query-params"
NOTHING = "None"
STEPS = 8
"""Cells that the estimate of the duration supposes; each step tries every cell that is left."""


def show(seen: ClassifiedImage, images: str, seed: int) -> None:
    """Choose the other class, and show which cells of one of its images change the prediction."""
    st.subheader("Counterfactual", anchor=False)
    gallery: Gallery | None = await_result(cache.start_gallery_job(seen.model, images))
    if gallery is None:
        return
    offered = list_other_classes(gallery, seen.predicted_class)
    name = st.selectbox(
        "With an image predicted to be",
        [NOTHING, *offered],
        key="counterfactual",
        bind=BIND,
        width=320,
        help="The image of this set that the AI assigns to the class with the most confidence. Cells of a grid are "
        f"exchanged with those in the same place, {GRID} by {GRID}, until the prediction changes.",
    )
    if name != NOTHING:
        other = seen.classifier.preprocess(gallery.images.open(offered[name]))
        task = make_counterfactual_task(seen.classifier, seen.inputs, other, seed)
        draw_when_ready(task, lambda counterfactual: _show_found(seen, other, counterfactual), "_counterfactual")
    generated.show(seen, gallery, seed)


def list_other_classes(gallery: Gallery, predicted: int) -> dict[str, int]:
    """List the other classes that are predicted in the set, by name, each with its most confident image."""
    predictions = gallery.predictions
    chosen = {}
    for k in np.unique(predictions.predicted[predictions.predicted != predicted]):
        mine = np.flatnonzero(predictions.predicted == k)
        chosen[gallery.class_names[k]] = int(mine[predictions.probability[mine].argmax()])
    return dict(sorted(chosen.items()))


def make_counterfactual_task(classifier: Classifier, inputs: Tensor, other: Tensor, seed: int) -> Task:
    """Return the task that searches the cells to exchange between two inputs (C, H, W)."""

    def compute(progress: Progress) -> Counterfactual:
        return find_counterfactual(classifier, inputs, other, seed=seed, progress=progress)

    settings = f"{GRID}|{PLACES}|{seed}"
    key = digest("counterfactual", classifier.fingerprint, settings, tensor_digest(inputs), tensor_digest(other))
    return Task(key, compute, lambda: estimate_seconds(classifier, Cost(STEPS * GRID**2 + PLACES)))


def _show_found(seen: ClassifiedImage, other: Tensor, counterfactual: Counterfactual) -> None:
    drawn = draw_counterfactual(seen.classifier, seen.inputs, other, counterfactual)
    captions = "The image, with the cells to exchange", "The other image, with the same cells", "Exchanged"
    for place, caption, image in zip(st.columns(3), captions, drawn, strict=True):
        place.image(image, caption=caption, width="stretch", alt=caption)
    names = seen.classifier.names.short
    st.markdown(escape_markdown(describe_counterfactual(counterfactual, names)))
