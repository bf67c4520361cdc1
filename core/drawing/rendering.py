"""Heatmap -> image: anchored at zero, colour-blind-safe, the scale written on it.

Two colours that colour-blind readers can tell apart: orange is evidence for the class, blue against it; where there is
no evidence the image shows through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from torch import Tensor

from core.drawing.sheet import ImageItem, Sheet, Words, render_png
from core.types import Explanation

FOR = np.array([230, 97, 1], dtype=np.float32)
AGAINST = np.array([33, 102, 172], dtype=np.float32)
NEUTRAL = np.array([247, 247, 247], dtype=np.float32)
UNCERTAIN = np.array([84, 39, 136], dtype=np.float32)
"""Of standard errors, which are evidence neither for the class nor against it."""
QUANTILE = 0.995
MARK = (255, 140, 0)
GAP = 4
"""Gap between the images of a drawing, px."""
DARKEN = 2
"""What is not marked has the brightness divided by this."""
NOISE_MULTIPLE = 6.0
"""The scale never zooms in further than this many standard errors: noise must not look like evidence."""

PixelArray = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Scale:
    """The values of full colour: ``zero`` plus or minus ``limit``, in the heatmap's unit."""

    zero: float
    limit: float

    def normalise_map(self, values: Tensor, error: Tensor | None = None) -> PixelArray:
        """Scale heatmap values (H, W), clipped to [-1, 1]; shrink them towards zero where standard errors are given.

        The factor v^2 / (v^2 + (2 se)^2) leaves clear evidence alone and fades what chance explains.
        """
        v = values.numpy() - self.zero
        if error is not None:
            v = v * v**2 / (v**2 + (2 * error.numpy()) ** 2 + np.finfo(np.float32).tiny)
        return np.clip(v / self.limit, -1, 1).astype(np.float32)


def scale_of(explanation: Explanation, i: int = 0, quantile: float = QUANTILE) -> Scale:
    """Return the own scale of heatmap ``i``: full colour from this quantile of its absolute values on."""
    limit = float(np.quantile(np.abs(explanation.evidence[i].numpy()), quantile))
    return Scale(float(explanation.zeros[i]), max(limit, _noise_limit(explanation, i)) or 1.0)


def shared_scales(explanations: Sequence[Explanation], quantile: float = QUANTILE) -> tuple[Scale, ...]:
    """Return one scale for each of several explanations of one image, all reaching equally far from their zeros.

    The quantile is of all their absolute values together, so that one strong heatmap does not hide the others.
    """
    values = np.concatenate([np.abs(one.evidence[0].numpy()).ravel() for one in explanations])
    noise = max(_noise_limit(one, 0) for one in explanations)
    limit = max(float(np.quantile(values, quantile)), noise) or 1.0
    return tuple(Scale(float(one.zeros[0]), limit) for one in explanations)


def _noise_limit(explanation: Explanation, i: int) -> float:
    """Return the least limit that does not make noise look like evidence."""
    error = explanation.error
    return 0.0 if error is None else NOISE_MULTIPLE * float(np.median(error[i].numpy()))


def heatmap(values: Tensor, scale: Scale, size: tuple[int, int]) -> Image.Image:
    """Draw the heatmap (H, W) alone, ``size`` = (width, height) px: orange above zero, blue below, near-white at it."""
    signed = _resize_map(scale.normalise_map(values), size)
    strength = np.abs(signed)[..., None]
    colour = np.where(signed[..., None] >= 0, FOR, AGAINST)
    return _to_image(NEUTRAL + strength * (colour - NEUTRAL))


def draw_error(error: Tensor, limit: float, size: tuple[int, int]) -> Image.Image:
    """Draw a standard error (H, W), ``size`` = (width, height) px: near-white at none, violet from ``limit`` on."""
    strength = np.abs(_resize_map(Scale(0.0, limit).normalise_map(error), size))[..., None]
    return _to_image(NEUTRAL + strength * (UNCERTAIN - NEUTRAL))


def overlay(image: Image.Image, signed: PixelArray, size: tuple[int, int], opacity: float) -> Image.Image:
    """Draw a heatmap (H, W) on its scale (`Scale.normalise_map`) over an image; stronger is more opaque.

    The image is drawn in grey under it, so that its own colours are not read as the heatmap's.
    """
    signed = _resize_map(signed, size)
    strength = (opacity * np.abs(signed))[..., None]
    colour = np.where(signed[..., None] >= 0, FOR, AGAINST)
    grey = np.asarray(image.convert("L").resize(size, Image.Resampling.LANCZOS), dtype=np.float32)[..., None]
    return _to_image(grey + strength * (colour - grey))


def mark_cells(image: Image.Image, cells: Sequence[int], grid: int) -> Image.Image:
    """Draw a line around cells of an image, numbered row by row from 0 on ``grid`` per side, and darken the rest."""
    dark = Image.eval(image, lambda value: value // DARKEN)
    pen, line = ImageDraw.Draw(dark), max(1, image.width // 160)
    for cell in cells:
        row, column = divmod(cell, grid)
        left, right = (-(-k * image.width // grid) for k in (column, column + 1))
        top, bottom = (-(-k * image.height // grid) for k in (row, row + 1))
        dark.paste(image.crop((left, top, right, bottom)), (left, top))
        pen.rectangle((left, top, right - 1, bottom - 1), outline=MARK, width=line)
    return dark


def tile_images(images: Sequence[Image.Image], across: int, gap: int = GAP) -> Image.Image:
    """Lay out images of one size in rows of ``across``, with gaps in px, on white; none are one white pixel."""
    if not images:
        return Image.new("RGB", (1, 1), "white")
    width, height = images[0].width + gap, images[0].height + gap
    sheet = Image.new("RGB", (across * width - gap, -(-len(images) // across) * height - gap), "white")
    for k, image in enumerate(images):
        sheet.paste(image, (k % across * width, k // across * height))
    return sheet


def draw_colour_bar(width: int, height: int) -> Image.Image:
    """Draw the colours of a scale from its lower to its upper end."""
    ramp = np.linspace(-1, 1, max(width, 2), dtype=np.float32)[None, :, None].repeat(height, 0)
    colour = np.where(ramp >= 0, FOR, AGAINST)
    return _to_image(NEUTRAL + np.abs(ramp) * (colour - NEUTRAL))


def with_scale(image: Image.Image, scale: Scale, caption: str) -> Image.Image:
    """Add a colour bar under the image that names its ends, its zero and its caption."""
    bar, margin, (width, height) = 14, 8, image.size
    under = height + margin + bar + 2
    ends = ((scale.zero - scale.limit, margin, "start"), (scale.zero, width // 2, "middle"))
    values = (*ends, (scale.zero + scale.limit, width - margin, "end"))
    words = [Words(x, under, f"{value:.3g}", 12, "black", anchor) for value, x, anchor in values]
    colours = draw_colour_bar(width - 2 * margin, bar)
    images = ImageItem(0, 0, width, height, image), ImageItem(margin, height + margin, *colours.size, colours)
    under_bar = Words(margin, under + 16, caption, 12, "black")
    return render_png(Sheet(width, height + bar + 3 * margin + 30, (*images, *words, under_bar)), pixels=1)


def _resize_map(signed: PixelArray, size: tuple[int, int]) -> PixelArray:
    image = Image.fromarray(signed).resize(size, Image.Resampling.BICUBIC)
    return np.clip(np.asarray(image, dtype=np.float32), -1, 1)


def _to_image(pixels: PixelArray) -> Image.Image:
    return Image.fromarray(np.clip(np.round(pixels), 0, 255).astype(np.uint8))
