"""Where two networks rely on different places: the difference of their heatmaps of one image."""

from __future__ import annotations

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from PIL import Image

from core.drawing.rendering import scale_of
from core.drawing.sheet import PIXELS, ImageItem, Sheet, Words, cut_text, encode_png, render_png
from core.names import format_name
from dashboard.explore.figures import SIDE
from dashboard.explore.heatmaps.appearance import find_palette
from dashboard.explore.heatmaps.sheet import Palette
from dashboard.explore.table import Cell, HeatmapColumn, HeatmapTable
from dashboard.shared.messages import escape_markdown

HIGHER = np.array([118, 42, 131], dtype=np.float32)
LOWER = np.array([214, 176, 0], dtype=np.float32)
"""Purple and yellow: orange and blue mean for and against a class. Colour-blind readers can tell them apart."""
WIDTH, BAR, MARGIN, SIZE = 340, 12, 6, 13


def show_difference(shown: HeatmapTable) -> None:
    """Draw for each method the difference of the heatmaps of the two networks, with what it means."""
    ready = {name: row for name, row in shown.rows.items() if all(cell.explanation is not None for cell in row)}
    if not ready:
        return
    st.header("Difference of the heatmaps", anchor=False)
    if not shown.shares_image:
        st.info("The two networks see different parts of the image, so their heatmaps cannot be subtracted.")
        return
    palette = find_palette()
    for name, row in ready.items():
        sheet = draw_difference_sheet(shown, row, palette)
        text = f"{format_name(name)}: {' minus '.join(_name_sides(shown, row))}"
        st.image(encode_png(render_png(sheet)), caption=escape_markdown(text), alt=text, width=round(sheet.width))
    st.caption(
        "Each heatmap is first divided by its own value of full colour, whatever the scale above: the units of two "
        "networks differ. The difference shows which places each network relies on more, not which network is right."
    )


def _name_sides(shown: HeatmapTable, row: tuple[Cell, ...]) -> list[str]:
    """Name each network, with the class that its heatmap explains where these differ."""
    names = [column.image.opened_from[0] for column in shown.columns]
    classes = [cell.request.class_name for cell in row]
    if len(set(classes)) == 1:
        return names
    return [f"{name} ({of})" for name, of in zip(names, classes, strict=True)]


def draw_difference_sheet(shown: HeatmapTable, row: tuple[Cell, ...], palette: Palette) -> Sheet:
    """Draw the difference of one method over the grey image, with its colours."""
    image = draw_difference(shown.columns[0], row, shown.look.quantile)
    width, height = WIDTH, WIDTH * image.height / image.width
    ramp = np.linspace(-1, 1, image.width, dtype=np.float32)[None, :, None].repeat(BAR * PIXELS, 0)
    bar = _colour(np.full_like(ramp, 128), ramp)
    first, second = (column.image.opened_from[0] for column in shown.columns)
    room = width / 2 - 4 * MARGIN
    y = height + MARGIN + BAR + MARGIN
    words = (
        Words(0, y, cut_text(f"higher: {second}", room, SIZE), SIZE, palette.faint),
        Words(width / 2, y, "same", SIZE, palette.faint, "middle"),
        Words(width, y, cut_text(f"higher: {first}", room, SIZE), SIZE, palette.faint, "end"),
    )
    images = ImageItem(0, 0, width, height, image), ImageItem(0, height + MARGIN, width, BAR, bar)
    return Sheet(width, y + 2 * SIZE, (*images, *words), palette.ground)


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


def draw_difference(column: HeatmapColumn, row: tuple[Cell, ...], quantile: float) -> Image.Image:
    """Draw the difference over the grey image."""
    size = column.image.view.size(SIDE)
    difference = subtract_heatmaps(row, quantile, size)[..., None]
    return _colour(np.asarray(column.image.view.draw(size, "L"), dtype=np.float32)[..., None], difference)


def _colour(grey: NDArray[np.float32], difference: NDArray[np.float32]) -> Image.Image:
    """Draw differences (H, W, 1) over grey levels (H, W, 1)."""
    colour = np.where(difference >= 0, HIGHER, LOWER)
    return Image.fromarray((grey + np.abs(difference) * (colour - grey)).round().astype(np.uint8))
