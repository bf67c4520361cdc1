"""Heatmaps in rows and columns: rows are methods; columns are images, classes of one image, or classifiers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from core.drawing.rendering import Scale, scale_of, shared_scales
from core.types import Certificate, Explanation
from dashboard.explore.figures import HeatmapStyle
from dashboard.explore.heatmap_jobs import Faithfulness, HeatmapRequest, Robustness
from dashboard.explore.images import ClassifiedImage

Scaling = Literal["Shared", "Own"]
SCALINGS: dict[Scaling, str] = {
    "Shared": "one scale for the heatmaps of a method",
    "Own": "each heatmap on its own scale",
}
SAME_PLACE_PX = 1.0
"""Parts of a photograph whose edges differ by less are the same part."""


@dataclass(frozen=True)
class HeatmapColumn:
    """An image as one network sees it, the class to explain there (None: it has no such class), and what is written."""

    image: ClassifiedImage
    target: int | None
    lines: tuple[str, ...]


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
    columns: tuple[HeatmapColumn, ...]
    rows: dict[str, tuple[Cell, ...]]
    scaling: Scaling
    look: HeatmapStyle
    is_pair: bool = False
    """Whether the columns are two networks, of which each explains the same image."""

    @property
    def shares_image(self) -> bool:
        """Whether it is a pair of networks that are known to see the same part of the image."""
        views = [column.image.view for column in self.columns]
        boxes = [None if one.geometry is None else one.geometry.box for one in views]
        if not self.is_pair or None in boxes:
            return False
        return all(abs(a - b) < SAME_PLACE_PX for a, b in zip(*filter(None, boxes), strict=True))

    @property
    def cells(self) -> list[tuple[HeatmapColumn, Cell]]:
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
