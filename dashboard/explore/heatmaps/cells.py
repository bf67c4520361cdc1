"""Turn choices into cells: the classes to explain, and the heatmaps computed so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from core.attribution.outside.external import reads_heatmaps
from core.network.classifier import Classifier
from dashboard.explore.heatmap_jobs import HeatmapRequest, make_faithfulness_task, make_robustness_task
from dashboard.explore.images import ClassifiedImage
from dashboard.explore.methods import name_methods
from dashboard.explore.table import Cell
from dashboard.shared import links
from dashboard.shared.live import JobCollector, describe_state

PREDICTION = "The AI's prediction"


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


def cell_of(asking: JobCollector, request: HeatmapRequest, seen: ClassifiedImage, *, measured: bool) -> Cell:
    """Return the heatmap as far as it is computed, with its measures if requested."""
    job = asking(request.task)
    if job is None or job.state != "done":
        return Cell(request, note=name_methods(describe_state(job)), refused=job is not None and job.state == "failed")
    if not measured:
        return Cell(request, job.result)
    measures = asking(make_faithfulness_task(request, job.result, seen.object_pixels))
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
