"""Marks that participants put on an image: a point, or cells that they brush over; read, written and scored.

A mark is stored as text: ``0.50000,0.25000`` is a point, x and y from the top left in units of the image's width and
height; `study.places.grid.encode_cells` writes a brush.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from core.errors import ForetellError
from study.places.grid import SIDE, Floats, Mask, decode_cells, encode_cells
from study.places.region import Region

Kind = Literal["point", "cells"]
MOST_CHARACTERS = 64 * 1024
"""Of the text of a mark: as many as a request may have, so that a longer one is refused with a reason."""
HALF = 0.5
"""Share of a brush that lies in the region where it is correct."""
_POINT = re.compile(r"([01]\.\d{5}),([01]\.\d{5})")


class Mark(Protocol):
    """What a participant marked."""

    @property
    def text(self) -> str:
        """The mark as it is stored."""

    def hits(self, inside: Mask) -> Mask:
        """Return for each of several regions (T, SIDE, SIDE) whether the mark counts as correct (T,)."""

    def overlap(self, ranks: NDArray[np.int64]) -> Floats | None:
        """Return the intersection over union (T,) with as many cells of most evidence; None of a mark without area.

        ``ranks`` (T, SIDE, SIDE) are the `Region.ranks` of several heatmaps.
        """

    def measure(self, region: Region) -> dict[str, float]:
        """Return the scores of the mark by name; those that do not exist are left out."""


@dataclass(frozen=True)
class Point:
    """A point, in units of the image's width and height, from the top left."""

    x: float
    y: float

    @classmethod
    def read(cls, text: str) -> Point:
        """Read a point; raises `ForetellError` where it is none, or outside the image."""
        matched = _POINT.fullmatch(text)
        if matched is None:
            raise ForetellError(f"The point {text[:40]!r} is not x,y with five decimals each, such as 0.50000,0.25000.")
        x, y = map(float, matched.groups())
        if max(x, y) > 1:
            raise ForetellError(f"The point {text!r} is outside the image: x and y are from 0 to 1.")
        return cls(x, y)

    @property
    def text(self) -> str:
        """The point as it is stored."""
        return f"{self.x:.5f},{self.y:.5f}"

    @property
    def cell(self) -> tuple[int, int]:
        """Row and column of its cell."""
        return min(int(self.y * SIDE), SIDE - 1), min(int(self.x * SIDE), SIDE - 1)

    def hits(self, inside: Mask) -> Mask:
        """Return whether the point is in each region."""
        return np.asarray(inside[:, *self.cell])

    def overlap(self, ranks: NDArray[np.int64]) -> None:
        """Return None: a point has no area."""
        del ranks

    def measure(self, region: Region) -> dict[str, float]:
        """Return ``distance`` to the region and ``peak_distance``, in widths of the image, and ``object_hit``."""
        scores = {"distance": self._find_distance(region), "peak_distance": self._measure_to(region, *region.peak)}
        if region.on_object is not None:
            scores["object_hit"] = float(region.on_object[self.cell])
        return scores

    def _measure_to(self, region: Region, x: float, y: float) -> float:
        return float(np.hypot(self.x - x, (self.y - y) * region.aspect))

    def _find_distance(self, region: Region) -> float:
        """Find the distance to the nearest point of the region, 0 inside it."""
        if region.inside[self.cell]:
            return 0.0
        rows, columns = np.nonzero(region.inside)
        across = self.x - np.clip(self.x, columns / SIDE, (columns + 1) / SIDE)
        down = (self.y - np.clip(self.y, rows / SIDE, (rows + 1) / SIDE)) * region.aspect
        return float(np.hypot(across, down).min())


@dataclass(frozen=True, eq=False)
class Brush:
    """The cells (SIDE, SIDE) that a brush went over: at least one."""

    cells: Mask

    @classmethod
    def read(cls, text: str) -> Brush:
        """Read a brush; raises `ForetellError` where it is none, or empty."""
        cells = decode_cells(text)
        if not cells.any():
            raise ForetellError("The brushed area is empty: brush over at least one place.")
        return cls(cells)

    @property
    def text(self) -> str:
        """The brush as it is stored."""
        return encode_cells(self.cells)

    def hits(self, inside: Mask) -> Mask:
        """Return whether at least half of what was brushed lies in each region: brushing over everything does not."""
        return np.asarray(self._share(inside) >= HALF)

    def overlap(self, ranks: NDArray[np.int64]) -> Floats:
        """Return the intersection over union (T,) with as many cells of most evidence."""
        shared = self._share(ranks < self.cells.sum())
        return np.asarray(shared / (2 - shared))

    def _share(self, inside: Mask) -> Floats:
        """Return the share (T,) of the brushed cells that lie in each of several sets (T, SIDE, SIDE)."""
        return np.asarray(inside[:, self.cells].mean(axis=1))

    def measure(self, region: Region) -> dict[str, float]:
        """Return the scores: ``brushed`` (share of the image), ``pointing``, ``iou`` and ``rank_correlation``.

        ``pointing`` is the share of the brush in the region, ``iou`` the intersection over union with as many cells of
        most evidence, ``rank_correlation`` Spearman's, over all cells; none where all are brushed.
        """
        scores = {
            "brushed": float(self.cells.mean()),
            "pointing": float(self._share(region.inside[None])[0]),
            "iou": float(self.overlap(region.ranks[None])[0]),
        }
        correlation = correlate_ranks(self.cells.astype(np.float64), region.evidence)
        return scores if correlation is None else {**scores, "rank_correlation": correlation}


MARKS: dict[Kind, type[Point] | type[Brush]] = {"point": Point, "cells": Brush}


def read_mark(kind: Kind, text: str) -> Mark:
    """Read a mark of a kind; raises `ForetellError` where it is none."""
    return MARKS[kind].read(text)


def correlate_ranks(one: Floats, other: Floats) -> float | None:
    """Compute Spearman's correlation of two arrays, ties at their mean rank; None where one of them is constant."""
    from scipy.stats import rankdata  # half a second of a first start, which does not need it

    a, b = (rankdata(values, axis=None) for values in (one, other))
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0 else None


def correlate_with_each(one: Floats, item: str, each: Mapping[str, Floats]) -> tuple[float | None, float | None]:
    """Correlate an array with that of its item, and with those of the others: the latter's mean is what chance gives.

    None where a correlation is not defined, or there is no array to correlate with.
    """
    others = [correlate_ranks(one, values) for name, values in each.items() if name != item]
    known = [value for value in others if value is not None]
    own = correlate_ranks(one, each[item]) if item in each else None
    return own, float(np.mean(known)) if known else None


def is_right(mark: Mark, region: Region) -> bool:
    """Return whether a mark counts as correct."""
    return bool(mark.hits(region.inside[None])[0])
