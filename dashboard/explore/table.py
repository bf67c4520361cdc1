"""Heatmaps in rows and columns: rows are methods; columns are images, classes of one image, or classifiers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.drawing.rendering import Scale, scale_of, shared_scales
from core.drawing.views import View
from core.network.classifier import Classifier
from core.types import Certificate, Explanation
from dashboard.explore.figures import HeatmapStyle
from dashboard.explore.heatmap_jobs import Faithfulness, HeatmapRequest, Robustness

Scaling = Literal["Shared", "Own"]
SCALINGS: dict[Scaling, str] = {
    "Shared": "one scale for the heatmaps of a method",
    "Own": "each heatmap on its own scale",
}
SAME_PLACE_PX = 1.0
"""Parts of a photograph whose edges differ by less are the same part."""


@dataclass(frozen=True)
class Source:
    """Where an image and a classifier come from, in Python, for `dashboard.explore.heatmaps.reproduce`.

    ``code`` is an expression that opens the image, after ``imports``; ``model`` is what `open_classifier` takes,
    relative to the folder ``base``.
    """

    name: str
    code: str
    imports: tuple[str, ...]
    model: str
    base: Path


@dataclass(frozen=True)
class Column:
    """An image as one classifier sees it; ``lines`` say what is written there."""

    seen: View
    classifier: Classifier
    lines: tuple[str, ...]
    source: Source
    mask: NDArray[np.bool_] | None = None

    @property
    def object_pixels(self) -> NDArray[np.bool_] | None:
        """Return the pixels (H, W) of the input that show the object, if known."""
        if self.mask is None or self.seen.note:
            return None
        return self.seen.cut(self.mask, self.classifier.input_shape[:0:-1])


@dataclass(frozen=True)
class Cell:
    """A heatmap, or the reason why there is none yet, or, if it is ``refused``, none at all; measures if requested."""

    request: HeatmapRequest
    explanation: Explanation | None = None
    note: str = "waiting"
    faithfulness: Faithfulness | None = None
    robustness: Robustness | None = None
    refused: bool = False

    @property
    def certificate(self) -> Certificate | None:
        """Return the certificate of the heatmap, if there is one."""
        return None if self.explanation is None else self.explanation.certificates[0]


@dataclass(frozen=True)
class HeatmapTable:
    """Cells of each method by column, and how to draw them."""

    title: str
    columns: tuple[Column, ...]
    rows: dict[str, tuple[Cell, ...]]
    scaling: Scaling
    look: HeatmapStyle
    is_pair: bool = False
    """Whether the columns are two networks, of which each explains the same image."""

    @property
    def shares_image(self) -> bool:
        """Whether it is a pair of networks that are known to see the same part of the image."""
        boxes = [None if column.seen.geometry is None else column.seen.geometry.box for column in self.columns]
        if not self.is_pair or None in boxes:
            return False
        return all(abs(a - b) < SAME_PLACE_PX for a, b in zip(*filter(None, boxes), strict=True))

    @property
    def cells(self) -> list[tuple[Column, Cell]]:
        """Return all cells with their columns, row by row."""
        return [pair for row in self.rows.values() for pair in zip(self.columns, row, strict=True)]

    @property
    def refusals(self) -> dict[str, str]:
        """Return the methods without any heatmap, as where they do not apply to the network, with the reason."""
        return {name: row[0].note for name, row in self.rows.items() if row and all(cell.refused for cell in row)}

    def describe_colours(self, method: str) -> str:
        """Say what the colours of a row mean, whose cells have the same parameters."""
        return self.rows[method][0].request.sign.words("the class")

    def leave_out(self, methods: Collection[str]) -> HeatmapTable:
        """Return the table without some of its methods."""
        return replace(self, rows={name: row for name, row in self.rows.items() if name not in methods})

    def scales(self, method: str) -> list[Scale | None]:
        """Return the value of the full colour of each heatmap of a row."""
        quantile = self.look.quantile
        explanations = [cell.explanation for cell in self.rows[method]]
        known = [one for one in explanations if one is not None]
        if self.scaling == "Own" or not known:
            return [None if one is None else scale_of(one, quantile=quantile) for one in explanations]
        shared = iter(shared_scales(known, quantile))
        return [None if one is None else next(shared) for one in explanations]
