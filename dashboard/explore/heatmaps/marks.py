"""What participants marked on the image that is shown, where it is an image of a study of this workspace.

An image is the same if the study's network is, and what it sees, drawn as participants saw it, has the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st
from PIL import Image

from core.errors import ForetellError
from dashboard.explore import figures
from dashboard.explore.images import ClassifiedImage
from dashboard.explore.table import Cell
from dashboard.shared import service
from dashboard.shared.collected import FRESH_S, study_frames
from dashboard.shared.messages import escape_markdown
from study.bundle import Bundle
from study.conditions import format_condition
from study.places.grid import Floats, pool
from study.places.marks import correlate_with_each
from study.tasks import find_task
from study.workspace.workspace import bundles, home, study_name

HUE = (255, 196, 0)
"""Of the brush on the participants' page."""
STRONGEST = 0.8
"""Opacity of the place that most participants marked."""


@dataclass(frozen=True)
class MarkedStudy:
    """The images of a study that participants mark.

    Attributes
    ----------
    fingerprint
        Of its network.
    size
        Width and height of its images as drawn, px.
    items
        Its trials by the SHA-256 of their images, each with the AI's label.
    """

    name: str
    study_hash: str
    fingerprint: str
    size: tuple[int, int]
    items: Mapping[str, tuple[str, str]]


def show_marks(seen: ClassifiedImage, cell: Cell) -> None:
    """Draw what participants marked on this image, by condition, with its agreement with the heatmap; if any."""
    for study in _list_marked_studies(str(home()), tuple(path.name for path in bundles(home()))):
        if study.fingerprint == seen.classifier.fingerprint and (item := study.items.get(_name_drawing(seen, study))):
            _show_study(study, *item, seen, cell)


@st.cache_resource(max_entries=4, show_spinner=False)
def _list_marked_studies(where: str, folders: tuple[str, ...]) -> list[MarkedStudy]:  # noqa: ARG001
    """List the newest version of each study whose responses are marks."""
    newest = {study_name(path): path for path in reversed(bundles(home()))}
    known = []
    for path in newest.values():
        with suppress(ForetellError, OSError):  # a bundle that cannot be read: pages of studies say so
            known.append(_read_study(Bundle(path)))
    return [study for study in known if study is not None]


def _read_study(bundle: Bundle) -> MarkedStudy | None:
    manifest = bundle.manifest
    if not manifest.trials or find_task(manifest.config).place is None:
        return None
    items = {trial.assets.target: (trial.id, trial.target) for trial in manifest.trials}
    with Image.open(bundle.asset(manifest.trials[0].assets.target)) as first:
        size = first.size
    return MarkedStudy(manifest.name, bundle.study_hash, manifest.classifier["fingerprint"], size, items)


def _name_drawing(seen: ClassifiedImage, study: MarkedStudy) -> str:
    """Return the SHA-256 that the image has as an asset of a study."""
    from study.building.drawing import encode_asset

    return encode_asset(seen.view.draw(study.size))[0]


def _show_study(study: MarkedStudy, item: str, label: str, seen: ClassifiedImage, cell: Cell) -> None:
    frame = _read_responses(study)
    if frame is None:
        return
    importance = _average_marks(f"{study.study_hash} {len(frame)} {set(frame['mode'])}", frame)
    conditions = [name for marked, name in importance if marked == item]
    if not conditions:
        return
    st.subheader("What participants marked", anchor=False)
    simulated = " Simulated participants." if set(frame["mode"]) == {"sim"} else ""
    st.caption(
        f"Study {escape_markdown(study.name)}: participants marked the evidence for {escape_markdown(label)}. "
        f"The stronger the yellow, the more of them marked the place.{simulated}"
    )
    evidence = None
    if cell.explanation is not None and cell.request.class_name == label:
        evidence = pool(cell.explanation.evidence[0].numpy().clip(min=0))
    for place, name in zip(st.columns(max(len(conditions), 3)), conditions, strict=False):
        drawn, people = importance[item, name]
        most = f"at most {drawn.max():.0%} of {people} participants at one place"
        caption = f"{format_condition(name)}: {most}{_compare(importance, item, name, evidence)}"
        place.image(draw_importance(seen, drawn), caption=caption, width="stretch", alt=caption)


@st.cache_resource(max_entries=4, ttl=FRESH_S, show_spinner=False)
def _average_marks(key: str, _frame: pd.DataFrame) -> dict[tuple[str, str], tuple[Floats, int]]:  # noqa: ARG001
    from study.analysis.exploratory.importance import average, spread_points

    return average(spread_points(_frame))


def _read_responses(study: MarkedStudy) -> pd.DataFrame | None:
    """Return the marks of people, else of simulated participants; None where there are none to be seen."""
    if (read := study_frames().get(study.name)) is None:
        return None
    frame = read()
    if frame.empty:
        return None
    frame = frame[(frame["study_hash"] == study.study_hash) & (frame["cells"].notna() | frame["x"].notna())]
    live = frame[frame["mode"] == "live"]
    if len(live) and not service.get_acting_researcher().is_blinded(study.name):
        return live
    simulated = frame[frame["mode"] == "sim"]
    return simulated if len(simulated) else None


def _compare(
    importance: Mapping[tuple[str, str], tuple[Floats, int]], item: str, condition: str, evidence: Floats | None
) -> str:
    """Say how far the marks agree with the evidence, and those on the other images."""
    if evidence is None:
        return ""
    own, others = correlate_with_each(
        evidence, item, {of: values for (of, name), (values, _) in importance.items() if name == condition}
    )
    if own is None:
        return ""
    chance = "" if others is None else f"; of the marks on other images {others:.2f}"
    return f". Rank correlation with this heatmap {own:.2f}{chance}"


def draw_importance(seen: ClassifiedImage, importance: Floats) -> Image.Image:
    """Draw the importance (SIDE, SIDE) over the image in grey, in full colour where it is largest."""
    size = seen.view.size(figures.SIDE)
    grey = np.asarray(seen.view.draw(size, "L"), dtype=np.float64)[..., None]
    scaled = Image.fromarray((255 * importance / max(importance.max(), 1e-9)).astype(np.uint8))
    share = STRONGEST * np.asarray(scaled.resize(size, Image.Resampling.BILINEAR), dtype=np.float64)[..., None] / 255
    return Image.fromarray((grey * (1 - share) + np.array(HUE) * share).astype(np.uint8))
