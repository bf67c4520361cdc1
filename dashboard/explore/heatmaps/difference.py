"""Where two networks rely on different places: the difference of their heatmaps of one image."""

from __future__ import annotations

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from PIL import Image

from core.names import format_name
from core.rendering import scale_of
from core.sheet import encode_png
from dashboard.explore.figures import SIDE
from dashboard.explore.table import Cell, Column, HeatmapTable
from dashboard.shared.messages import escape_markdown

HIGHER = np.array([118, 42, 131], dtype=np.float32)
LOWER = np.array([214, 176, 0], dtype=np.float32)
"""Purple and yellow: orange and blue mean for and against a class. Colour-blind readers can tell them apart."""
SAME_PLACE_PX = 1.0
"""Parts of a photograph whose edges differ by less are the same part."""


def show_difference(shown: HeatmapTable) -> None:
    """Draw for each method the difference of the heatmaps of the two networks, with what it means."""
    if len(shown.columns) != 2:
        return
    ready = {name: row for name, row in shown.rows.items() if all(cell.explanation is not None for cell in row)}
    if not ready:
        return
    first, second = shown.columns
    st.header("Difference of the heatmaps", anchor=False)
    if not _see_the_same_part(first, second):
        st.info("The two networks see different parts of the image, so their heatmaps cannot be subtracted.")
        return
    names = [column.source.model for column in shown.columns]
    for name, row in ready.items():
        image = draw_difference(first, row, shown.look.quantile)
        text = f"{format_name(name)}: {names[0]} minus {names[1]}"
        st.image(encode_png(image), caption=escape_markdown(text), alt=text, width="content")
    st.caption(
        escape_markdown(
            f"Purple: the heatmap of {names[0]} is higher here than that of {names[1]}; yellow: lower. Each is first "
            "divided by its own value of full colour, because the units of two networks differ. The difference shows "
            "where they rely on different places, not which of them is right."
        )
    )


def subtract_heatmaps(row: tuple[Cell, ...], quantile: float, size: tuple[int, int]) -> NDArray[np.float32]:
    """Return half the difference of two heatmaps, each scaled to [-1, 1], at ``size`` = (width, height): in [-1, 1]."""
    scaled = []
    for cell in row:
        assert cell.explanation is not None
        error = None if cell.explanation.error is None else cell.explanation.error[0]
        signed = scale_of(cell.explanation, quantile=quantile).normalise_map(cell.explanation.map[0], error)
        scaled.append(np.asarray(Image.fromarray(signed).resize(size, Image.Resampling.BILINEAR), dtype=np.float32))
    difference: NDArray[np.float32] = np.float32(0.5) * (scaled[0] - scaled[1])
    return difference


def draw_difference(column: Column, row: tuple[Cell, ...], quantile: float) -> Image.Image:
    """Draw the difference over the grey image."""
    size = column.seen.size(SIDE)
    difference = subtract_heatmaps(row, quantile, size)[..., None]
    grey = np.asarray(column.seen.draw(size, "L"), dtype=np.float32)[..., None]
    colour = np.where(difference >= 0, HIGHER, LOWER)
    return Image.fromarray((grey + np.abs(difference) * (colour - grey)).round().astype(np.uint8))


def _see_the_same_part(first: Column, second: Column) -> bool:
    """Tell whether both networks are known to see the same part of the image."""
    one, other = [None if column.seen.geometry is None else column.seen.geometry.box for column in (first, second)]
    if one is None or other is None:
        return False
    return all(abs(a - b) < SAME_PLACE_PX for a, b in zip(one, other, strict=True))
