"""What the layers represent and how near the decision boundaries are: the questions of the command `layers`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st
from PIL import Image

from core.names import format_name
from core.network.classifier import Classifier
from core.parameters import summary
from dashboard.explore.heatmap_jobs import start_pace_job
from dashboard.explore.heatmaps import downloads
from dashboard.explore.layers.choice import LEAST
from dashboard.explore.layers.jobs import LayerRequest, LayerResult
from dashboard.explore.parameters import COST_UNKNOWN
from dashboard.shared import files, numbers
from dashboard.shared.jobs import pool
from dashboard.shared.live import await_result, begin, draw_when_ready, format_duration, is_held
from dashboard.shared.messages import escape_markdown
from data.types import ImageSet
from inquiry.layers import QUESTIONS
from inquiry.layers.inspection import LayerQuery
from inquiry.layers.record import Drawing, QuestionRecord, record_of
from study.analysis.words.headings import format_heading

EXAMPLE_COUNTS = (50, LEAST)
"""Images of an example that is computed at once where all would take long."""


def show(asked: LayerQuery, classifier: Classifier, compared: Classifier, images: ImageSet, count: int) -> None:
    """Show the result as a figure and a table, once it is computed."""
    record = record_of(asked.question)
    _describe_question(asked.question, record)
    same = classifier.fingerprint == compared.fingerprint
    if record.pairs and same and (not asked.other_layers or asked.layers == asked.other_layers):
        st.info(
            f"{record.pairs} compares two networks, or two layers of one. Choose a network under "
            "**Compared with**, or different layers under **Layers** and **Its layers**."
        )
        return
    if await_result(start_pace_job(classifier)) is None:  # without it, work that takes long would start unasked
        return
    request = LayerRequest(asked, classifier, compared, images, count)
    if request.estimate() is None:
        st.caption(COST_UNKNOWN)
    example = find_example(request)
    if example is request:
        draw_when_ready(request.task, lambda result: _draw_result(request, result), "_layers")
    else:
        _offer_whole(request, example)
        # So few images did not do: drawn again, the page offers all of them, with no error in its place.
        draw_when_ready(example.task, lambda result: _draw_result(example, result), "_layers", lambda _: st.rerun())
    downloads.show_downloads(None)


def _describe_question(question: str, record: QuestionRecord) -> None:
    """Say what a question asks, and how its result is read."""
    st.header(format_name(question), anchor=False)
    with st.container(key="layers_about"):  # on a phone, whose controls are in a drawer
        st.caption(escape_markdown(summary(QUESTIONS[question])))
    if said := describe_reading(record):
        st.caption(said)


def describe_reading(record: QuestionRecord) -> str:
    """Say how a question's figure is read, and cite the publications of its method, as Markdown."""
    cited = ", ".join(f"[{name}]({address})" for name, address in record.publications.items())
    return " ".join(filter(None, (record.reading, f"Method: {cited}." if cited else "")))


def find_example(request: LayerRequest) -> LayerRequest:
    """Return the request about fewer images where all would wait for a click and these do not; else the request.

    Where a question failed with few images, such as one that needs several of each class, there is no example.
    """
    if not is_held(request.task):
        return request
    smaller = [replace(request, count=count) for count in EXAMPLE_COUNTS if count < request.image_count]
    if any(map(_has_failed, smaller)):
        return request
    return next((one for one in smaller if not is_held(one.task)), request)


def _has_failed(request: LayerRequest) -> bool:
    """Tell whether so few images did not do."""
    job = pool().find(request.key)
    return job is not None and job.state == "failed"


def _offer_whole(request: LayerRequest, example: LayerRequest) -> None:
    """Say that fewer images are shown, and offer all that were asked for."""
    about = format_duration(request.task.seconds or 0.0)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"An example with {example.count} images.", width="content")
        st.button(
            f"Compute with {request.image_count:,} images ({about})",
            key="layers_whole", type="primary", on_click=begin, args=([request.key],),
        )  # fmt: skip


def _draw_result(request: LayerRequest, result: LayerResult) -> None:
    record, name = record_of(request.query.question), f"{request.classifier.file_name}.{request.query.question}"
    if len(result.table):
        if record.figure:
            st.plotly_chart(record.figure(result.table), key="layers_figure", config={"displaylogo": False})
        st.caption(_count_images(request, result))
    notes = [escape_markdown(note) for note in list_notes(record, result.table)]
    if record.table.notes_are_results:
        st.caption("\n".join(f"- {note}" for note in notes))
    else:
        for note in notes:
            st.warning(note)
    if record.drawing:
        _show_drawings(record.drawing, result.drawings)
    numbers.table(
        result.table,
        name,
        record.table.codes,
        headings=record.table.headings,
        shares=record.table.list_shares(result.table),
    )
    files.offer_download(
        f"{name}.json, how it was computed", lambda: _format_facts(result.facts), f"{name}.json", "application/json"
    )


def _show_drawings(drawing: Drawing, images: Mapping[str, Image.Image]) -> None:
    widest = max((image.width for image in images.values()), default=0)
    for name, image in images.items():
        text = drawing.describe(name)
        st.image(pad(image, widest) if drawing.padded else image, caption=text, alt=text)


def pad(image: Image.Image, width: int) -> Image.Image:
    """Widen an image by transparent pixels at the right, so that the tiles of several keep one size on the page."""
    wide = Image.new("RGBA", (width, image.height))
    wide.paste(image, (0, 0))
    return wide


def list_notes(record: QuestionRecord, table: pd.DataFrame) -> list[str]:
    """List the notes of a question's table, each with the part of the result that it is about."""
    if "note" not in table:
        return []
    column = record.table.noted
    noted = table[table["note"].notna()]
    names = noted[column] if column else ["all"] * len(noted)
    return [
        note if name == "all" else f"{format_heading(column)} {name}: {note}"
        for name, note in zip(names, noted["note"], strict=True)
    ]


def _count_images(request: LayerRequest, result: LayerResult) -> str:
    if record_of(request.query.question).own_images:
        return "The images of the set are not used."
    most = int(request.query.parameters.get("images", request.image_count))
    asked = len(result.table) if "image" in result.table else min(most, request.image_count)
    whole = len(request.images)
    return f"All {asked:,} images." if asked == whole else f"{asked:,} of the {whole:,} images."


def _format_facts(facts: dict[str, Any]) -> str:
    return json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
