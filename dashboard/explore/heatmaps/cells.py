"""Turn choices into cells: the predictions, the classes to explain, and the heatmaps computed so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import streamlit as st
from torch import Tensor

from core.attribution.outside.external import ImageRecord, reads_heatmaps
from core.drawing.views import View, view
from core.names import format_probability
from core.network.classifier import Classifier
from dashboard.explore.heatmap_jobs import HeatmapRequest, make_faithfulness_task, make_robustness_task
from dashboard.explore.methods import name_methods
from dashboard.explore.source import ChosenImage
from dashboard.explore.table import Cell, Column
from dashboard.shared import cache, links
from dashboard.shared.live import JobCollector, describe_state

PREDICTION = "The AI's prediction"


@dataclass(frozen=True)
class ClassifiedImage:
    """An image as a classifier sees it, with its prediction."""

    model: str
    chosen: ChosenImage

    @cached_property
    def classifier(self) -> Classifier:
        """Load the classifier."""
        return cache.load_classifier(self.model)

    @cached_property
    def inputs(self) -> Tensor:
        """Return the preprocessed image (C, H, W)."""
        return self.classifier.preprocess(self.chosen.image)

    @cached_property
    def view(self) -> View:
        """Return the image as the classifier sees it."""
        return view(self.classifier, self.chosen.image, self.inputs)

    @property
    def record(self) -> ImageRecord:
        """Return the identity of the image, by which finished heatmaps are found."""
        return ImageRecord.of(self.view, self.chosen.name)

    @cached_property
    def probabilities(self) -> Tensor:
        """Return the predicted probabilities (K,)."""
        return self.classifier.probabilities(self.inputs[None])[0]

    @cached_property
    def ranked_classes(self) -> list[int]:
        """Return the classes, the likeliest first."""
        order: list[int] = self.probabilities.argsort(descending=True).tolist()
        return order

    @property
    def predicted_class(self) -> int:
        """Return the predicted class."""
        return self.ranked_classes[0]

    @property
    def truth(self) -> int | None:
        """Return the true class, if it is known and the classifier has it."""
        matches = self.classifier.names.find(self.chosen.truth or "")
        return matches[0] if len(matches) == 1 else None

    @property
    def verdict(self) -> str:
        """Say whether the prediction is right; empty if the true class is unknown."""
        if self.chosen.truth is None:
            return ""
        if self.truth is None:
            return f"not scored: this network has no class {self.chosen.truth}"
        return "right" if self.truth == self.predicted_class else f"wrong, true class: {self.chosen.truth}"

    def format_confidence(self, k: int) -> str:
        """Format a class with its predicted probability."""
        return f"{self.classifier.names.short[k]} {format_probability(float(self.probabilities[k]))}"

    def column(self, *lines: str) -> Column:
        """Return its column in a table."""
        chosen = self.chosen
        return Column(self.view, self.classifier, lines, chosen.source(self.model), chosen.mask)


def target_box(classifier: Classifier, first: Sequence[str] = ()) -> str:
    """Choose the class to explain, by name, or `PREDICTION`; the classes ``first`` are offered before the others."""
    names = classifier.names.short
    offered = dict.fromkeys([PREDICTION, *(name for name in first if name in names), *names])
    links.update_classes("target", classifier.names, offered)
    links.check("target", offered, "class")
    return st.selectbox("Explain", list(offered), key="target", bind="query-params", width=190)


def target_of(seen: ClassifiedImage, name: str) -> int | None:
    """Return the class of a name of `target_box`; None if this classifier has no such class."""
    if name == PREDICTION:
        return seen.predicted_class
    matches = seen.classifier.names.find(name)
    return matches[0] if len(matches) == 1 else None


def cell_of(asking: JobCollector, request: HeatmapRequest, column: Column, *, measured: bool) -> Cell:
    """Return the heatmap as far as it is computed, with its measures if requested."""
    job = asking(request.task)
    if job is None or job.state != "done":
        return Cell(request, note=name_methods(describe_state(job)), refused=job is not None and job.state == "failed")
    if not measured:
        return Cell(request, job.result)
    measures = asking(make_faithfulness_task(request, job.result, column.object_pixels))
    faithfulness = measures.result if measures is not None and measures.state == "done" else None
    return Cell(request, job.result, faithfulness=faithfulness)


def with_robustness(asking: JobCollector, cell: Cell) -> Cell:
    """Add the robustness of the method to a cell, as soon as it is computed."""
    if cell.faithfulness is None or reads_heatmaps(cell.request.heatmap_method):
        return cell
    job = asking(make_robustness_task(cell.request))
    if job is None:
        asking.action = "Run the stability tests"
    return replace(cell, robustness=job.result) if job is not None and job.state == "done" else cell
