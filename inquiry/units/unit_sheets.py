"""Contact sheets of a unit: images maximised for it and images found for it, each with its activation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from torch import Tensor

from core.drawing.sheet import FAINT, INK, ImageItem, Item, Sheet, Words, cut_text, render_png, wrap_text
from core.units.maco import opacity
from core.units.maximise import MaximisedImages
from inquiry.units.exemplars import Exemplar, Exemplars, PixelBox

SIDE = 224
"""Width of an image made for a unit, px."""
CELL = 150
"""Width and height of a part of an exemplar, px."""
GAP = 6
MARGIN = 16
SIZE = 14
GREY = (128, 128, 128)
"""Padding around a part that is not square, and 0 in a projection."""
FIELD = (230, 97, 1)
PARTS = "the image with the unit's receptive field, that part, and its deconvnet projection, grey where 0"
WHOLES = "the image, and its deconvnet projection, grey where 0"


@dataclass(frozen=True)
class Tile:
    """An image and the words under it."""

    image: Image.Image
    words: str


def tile_maximised(maximised: MaximisedImages) -> list[Tile]:
    """Make a tile for each start, with the activation reached; what mattered less is more transparent."""
    pairs = zip(_add_opacity(maximised), maximised.activations.tolist(), strict=True)
    return [Tile(_wide(pixels, SIDE), f"start {k}: {activation:.4g}") for k, (pixels, activation) in enumerate(pairs)]


def _add_opacity(maximised: MaximisedImages) -> NDArray[np.uint8]:
    """Return the images as colours, with opacity as the fourth channel where importance was measured."""
    colours: NDArray[np.uint8] = maximised.shown.numpy()
    if maximised.importance is None:
        return colours
    alpha = (255 * opacity(maximised.importance)).round().to(torch.uint8).numpy()
    return np.concatenate([colours, alpha[..., None]], 3)


def tile_exemplars(exemplars: Exemplars) -> list[Tile]:
    """Make a tile for each image found, with the parts that `parts` names."""
    whole = _is_whole_image(exemplars)
    return [Tile(_strip(one, whole=whole), f"{one.activation:.4g}   {one.id}") for one in exemplars.exemplars]


def drop_projections(tiles: Sequence[Tile]) -> list[Tile]:
    """Cut the projection, its last cell, off each tile but the first: for projections that are all the same."""
    first, *others = tiles
    return [first, *(Tile(one.image.crop((0, 0, one.image.width - CELL - GAP, CELL)), one.words) for one in others)]


def parts(exemplars: Exemplars) -> str:
    """Describe the parts of a found image's tile."""
    return WHOLES if _is_whole_image(exemplars) else PARTS


def _is_whole_image(exemplars: Exemplars) -> bool:
    """Tell whether the unit's receptive field is all of every image."""
    return all(one.box == (0, 0, *one.shown.shape[:2]) for one in exemplars.exemplars)


def sheet(title: Sequence[str], tiles: Sequence[Tile], columns: int) -> Image.Image:
    """Draw tiles in rows under a title, dark on white."""
    width, height = tiles[0].image.size
    line = round(1.5 * SIZE)
    columns = min(columns, len(tiles))
    rows = -(-len(tiles) // columns)
    step = (width + MARGIN, height + line + MARGIN)
    words = [part for text in title for part in wrap_text(text, columns * step[0] - MARGIN, SIZE)]
    top = MARGIN + line * len(words) + MARGIN // 2
    items: list[Item] = [
        Words(MARGIN, MARGIN + k * line, text, SIZE, FAINT if k else INK) for k, text in enumerate(words)
    ]
    for k, tile in enumerate(tiles):
        x, y = MARGIN + k % columns * step[0], top + k // columns * step[1]
        items.append(ImageItem(x, y, *tile.image.size, tile.image))
        items.append(Words(x, y + height + 3, cut_text(tile.words, width, SIZE), SIZE))
    return render_png(Sheet(MARGIN + columns * step[0], top + rows * step[1], tuple(items)), pixels=1)


def _strip(one: Exemplar, *, whole: bool) -> Image.Image:
    """Draw the parts of a tile, all of one size; a missing part stays grey."""
    cells = [_outline_box(one.shown, one.box)]
    if not whole:
        cells.append(_inside(_part(one.shown, one.box)))
    if one.projection is None:
        cells.append(Image.new("RGB", (CELL, CELL), GREY))
    else:
        cells.append(_inside(_part(_colour_projection(one.projection, one.box), one.box)))
    strip = Image.new("RGBA", (len(cells) * (CELL + GAP) - GAP, CELL))  # transparent between them, on any page
    for k, cell in enumerate(cells):
        strip.paste(cell, (k * (CELL + GAP), 0))
    return strip


def _colour_projection(projection: Tensor, box: PixelBox) -> NDArray[np.uint8]:
    """Draw a projection (C, H, W) as colours (H, W, 3): 0 is mid-grey, the strongest within the box black or white."""
    top, left, bottom, right = box
    strongest = float(projection[:, top:bottom, left:right].abs().max()) or 1.0
    levels = (projection / strongest).clamp(-1, 1).expand(3, -1, -1).permute(1, 2, 0).numpy()
    return np.asarray(np.round(GREY[0] + levels * np.where(levels < 0, GREY[0], 255 - GREY[0])), dtype=np.uint8)


def _part(pixels: NDArray[np.uint8], box: PixelBox) -> NDArray[np.uint8]:
    top, left, bottom, right = box
    return pixels[top:bottom, left:right]


def _outline_box(pixels: NDArray[np.uint8], box: PixelBox) -> Image.Image:
    """Draw a line around the box, unless that is the whole image."""
    drawn, scale, (x, y) = _place_in_cell(pixels)
    top, left, bottom, right = (scale * edge for edge in box)
    if box != (0, 0, *pixels.shape[:2]):
        corners = (x + left, y + top, x + right - 1, y + bottom - 1)
        ImageDraw.Draw(drawn).rectangle(corners, outline=FIELD, width=3)
    return drawn


def _inside(pixels: NDArray[np.uint8]) -> Image.Image:
    return _place_in_cell(pixels)[0]


def _place_in_cell(pixels: NDArray[np.uint8]) -> tuple[Image.Image, float, tuple[int, int]]:
    """Fit an image into the middle of a grey cell; return the cell, the scale and the position."""
    height, width = pixels.shape[:2]
    scale = CELL / max(height, width)
    fitted = Image.fromarray(pixels).resize((max(1, round(width * scale)), max(1, round(height * scale))))
    at = (CELL - fitted.width) // 2, (CELL - fitted.height) // 2
    cell = Image.new("RGB", (CELL, CELL), GREY)
    cell.paste(fitted, at)
    return cell, scale, at


def _wide(pixels: NDArray[np.uint8], width: int) -> Image.Image:
    height = round(width * pixels.shape[0] / pixels.shape[1])
    return Image.fromarray(pixels).resize((width, height), Image.Resampling.LANCZOS)
