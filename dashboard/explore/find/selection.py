"""Several chosen images of a set: kept in the session and the link, used by the Grid, and downloaded."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import streamlit as st

from dashboard.shared import cache, files
from dashboard.shared.cache import Gallery
from dashboard.shared.keys import FIRST_IMAGES_KEY, IMAGE_KEY, IMAGES_KEY
from study.workspace.spreadsheets import csv_text

MOST_SELECTED = 200
"""Images of a selection: its numbers are part of the link, and its files of one download."""


def read_numbers(key: str, name: str) -> list[str]:
    """Read the numbers of images of the set ``name`` from this session, or from its link."""
    text = st.session_state.get(key) or st.query_params.get(key, "")
    of, _, numbers = text.rpartition("/")
    return [number for number in numbers.split(",") if number] if of == name else []


def read_selection(name: str, count: int) -> list[int]:
    """Return the selected images of a set of ``count`` images, in the order of their selection."""
    fitting = [int(n) for n in read_numbers(IMAGES_KEY, name) if n.isdecimal() and int(n) < count]
    return list(dict.fromkeys(fitting))[:MOST_SELECTED]


def select(name: str, images: Sequence[int]) -> None:
    """Make these the selected images of a set."""
    text = f"{name}/{','.join(map(str, images[:MOST_SELECTED]))}" if images else ""
    st.session_state[IMAGES_KEY] = text
    if text:
        st.query_params[IMAGES_KEY] = text
    else:
        st.query_params.pop(IMAGES_KEY, None)


def forget_shown_images() -> None:
    """Let the next order begin with its own first images; images that were picked by hand for a grid stay."""
    st.session_state.pop(IMAGE_KEY, None)
    st.query_params.pop(IMAGE_KEY, None)
    if st.query_params.get(IMAGES_KEY) == st.session_state.get(FIRST_IMAGES_KEY):
        st.query_params.pop(IMAGES_KEY, None)


def toggle(name: str, selected: Sequence[int], i: int) -> None:
    """Add an image to the selected ones, or remove it."""
    select(name, [k for k in selected if k != i] if i in selected else [*selected, i])


def offer_downloads(gallery: Gallery, name: str, selected: Sequence[int]) -> None:
    """Offer the files of the selected images with a table of what the network predicts."""
    files.offer_download(
        f"Images and predictions of {len(selected):,} (ZIP)",
        lambda: build_archive(gallery, name, selected),
        f"{name}.images.zip",
        "application/zip",
    )


def tabulate(gallery: Gallery, selected: Sequence[int]) -> pd.DataFrame:
    """Return a table of images: id, label, predicted class and confidence; ``correct`` is empty if not scored."""
    rows = []
    for i in selected:
        truth, predicted, confidence = gallery.describe_prediction(i)
        correct = bool(gallery.predictions.correct[i]) if gallery.has_known_label[i] else None
        rows.append((gallery.images.ids[i], truth, predicted, confidence, correct))
    return pd.DataFrame(rows, columns=["id", "true_class", "predicted_class", "confidence", "correct"])


def build_archive(gallery: Gallery, name: str, selected: Sequence[int]) -> bytes:
    """Build a ZIP of the original files, or PNGs of images that have none, with ``images.csv``."""
    table, stream = tabulate(gallery, selected), io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        names = []
        for i in selected:
            ending, content = _read_original(gallery, name, i)
            names.append(f"images/{gallery.images.ids[i].removesuffix(ending)}{ending}")
            archive.writestr(names[-1], content)
        table.insert(1, "file", names)
        archive.writestr("images.csv", csv_text(table))
    return stream.getvalue()


def _read_original(gallery: Gallery, name: str, i: int) -> tuple[str, bytes]:
    """Return the ending and the content of an image's file: its own, or a PNG if it was drawn."""
    source, base = cache.find_image_source(name)
    folder = source.settings.get("path")
    file = None if folder is None else base / Path(folder) / gallery.images.ids[i]
    if file is not None and file.is_file():
        return file.suffix, file.read_bytes()
    stream = io.BytesIO()
    gallery.images.open(i).save(stream, "PNG")
    return ".png", stream.getvalue()
