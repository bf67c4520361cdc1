"""A photograph as a network sees it: what heatmaps are drawn over."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from core.network.classifier import Classifier
from core.network.geometry import Geometry

ALIKE = 0.8
"""Smallest correlation of the greys of the part drawn with those of the input that it is drawn for."""
FLAT = 4.0
"""Below this standard deviation of its greys (of 255) an image is too plain to compare."""
VARY = "change at random"
MOVE = "do more to a photograph than resize, cut, pad, turn or mirror it"


@dataclass(frozen=True)
class View:
    """The part of a photograph that an input shows, or the input itself where that part cannot be known.

    Attributes
    ----------
    photograph
        RGB, any size.
    own
        The input as RGB, one pixel for each of its own.
    geometry
        Where the input lies in the photograph; None where that is not known.
    note
        Why it is not known, a sentence; else empty.
    """

    photograph: Image.Image = field(repr=False)
    own: Image.Image = field(repr=False)
    geometry: Geometry | None
    note: str = ""

    def draw(self, size: tuple[int, int], mode: str = "RGB") -> Image.Image:
        """Draw it at ``size`` = (width, height), from the photograph's own resolution where that is known."""
        if self.geometry is None:
            return self.own.convert(mode).resize(size, Image.Resampling.BICUBIC)
        return _draw_photograph(self.photograph.convert(mode), self.geometry, size, self.own.convert(mode))

    def size(self, width: int) -> tuple[int, int]:
        """Return (width, height) of a drawing of that width."""
        return width, round(width * self.own.height / self.own.width)

    def cut(self, mask: NDArray[np.bool_], size: tuple[int, int]) -> NDArray[np.bool_]:
        """Return those of ``size`` = (width, height) pixels that lie inside a mask (h, w) of the photograph.

        Nothing is inside where the geometry is not known.
        """
        if self.geometry is None:
            return np.zeros(size[::-1], dtype=bool)
        drawn = _draw_photograph(Image.fromarray(mask).convert("L"), self.geometry, size, Image.new("L", size))
        inside: NDArray[np.bool_] = np.asarray(drawn) > 127
        return inside

    @cached_property
    def fits(self) -> bool:
        """Tell whether the part drawn resembles the input, as far as greys can show."""
        drawn = np.asarray(self.draw(self.own.size, "L"), dtype=float).ravel()
        own = np.asarray(self.own.convert("L"), dtype=float).ravel()
        if min(drawn.std(), own.std()) < FLAT:
            return True
        return bool(np.corrcoef(drawn, own)[0, 1] ** 2 >= ALIKE**2)


def view(classifier: Classifier, photograph: Image.Image, inputs: Tensor | None = None) -> View:
    """See a photograph as the network does; ``inputs`` (C, H, W) are what its transforms made of it, if at hand."""
    own = classifier.render_input(classifier.preprocess(photograph) if inputs is None else inputs)
    if classifier.transforms_vary:
        return _unknown(classifier, photograph, own, VARY)
    geometry = classifier.geometry(photograph.size)
    own_view = View(photograph.convert("RGB"), own, geometry)
    return own_view if geometry is not None and own_view.fits else _unknown(classifier, photograph, own, MOVE)


def _unknown(classifier: Classifier, photograph: Image.Image, own: Image.Image, why: str) -> View:
    note = (
        f"The transforms of {classifier.name} {why}, so it is not known which part of the photograph the network sees: "
        "the network's own input is shown instead."
    )
    return View(photograph, own, None, note)


def _draw_photograph(
    photograph: Image.Image, geometry: Geometry, size: tuple[int, int], ground: Image.Image
) -> Image.Image:
    """Draw the photograph over ``ground``, which shows where the input lies outside of it."""
    box = geometry.box
    if box is None:
        return _draw_turned_photograph(photograph, geometry, size, ground)
    left, top, right, bottom = box
    inner = max(left, 0.0), max(top, 0.0), min(right, float(photograph.width)), min(bottom, float(photograph.height))
    if inner == box:
        return photograph.resize(size, Image.Resampling.LANCZOS, box=inner)
    scale = size[0] / (right - left), size[1] / (bottom - top)
    place = [round((edge - (left, top)[k % 2]) * scale[k % 2]) for k, edge in enumerate(inner)]
    whole = ground.resize(size, Image.Resampling.BICUBIC)
    shown = max(place[2] - place[0], 1), max(place[3] - place[1], 1)
    whole.paste(photograph.resize(shown, Image.Resampling.LANCZOS, box=inner), (place[0], place[1]))
    return whole


def _draw_turned_photograph(
    photograph: Image.Image, geometry: Geometry, size: tuple[int, int], ground: Image.Image
) -> Image.Image:
    """Draw a photograph that is turned or mirrored: made small enough first that no pixel of it is skipped."""
    steps = np.array(geometry.shape[::-1]) / size
    matrix = np.array(geometry.matrix) * [*steps, 1]
    shrink = max(1.0, float(np.abs(matrix[:, :2]).sum(1).max()))
    small = max(1, round(photograph.width / shrink)), max(1, round(photograph.height / shrink))
    matrix *= np.array([[small[0] / photograph.width], [small[1] / photograph.height]])
    numbers = tuple(matrix.ravel().tolist())
    drawn = photograph.resize(small, Image.Resampling.LANCZOS).transform(
        size, Image.Transform.AFFINE, numbers, Image.Resampling.BICUBIC
    )
    covered = Image.new("L", small, 255).transform(size, Image.Transform.AFFINE, numbers)
    whole = ground.resize(size, Image.Resampling.BICUBIC)
    whole.paste(drawn, mask=covered)
    return whole
