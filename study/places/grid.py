"""The grid on which places are compared: an image divided into `SIDE` x `SIDE` equal cells, written compactly."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.errors import ForetellError

SIDE = 32
"""Cells along each side of an image: 1/32 of the width is finer than a finger."""
CELLS = SIDE * SIDE
DIGITS = CELLS // 4
"""Hexadecimal digits of a set of cells."""
RADIUS = 1.6
"""Of a brush, in cells, as in `dashboard/runner/place.js`."""
LARGEST = 60_000
"""The largest value as written in 16 bits: its halves, thirds, quarters and fifths are whole numbers, too."""
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def pool(values: NDArray[np.floating]) -> Floats:
    """Sum values (H, W) over the cells of the grid (SIDE, SIDE); a pixel that several cells share is divided."""
    rows, columns = (_overlap(length) for length in values.shape)
    return np.asarray(rows @ values.astype(np.float64) @ columns.T)


def _overlap(length: int) -> Floats:
    """Return the share (SIDE, length) of each pixel along a side that lies in each cell."""
    cell, pixel = np.arange(SIDE)[:, None] * length / SIDE, np.arange(length)[None]
    return (np.minimum(cell + length / SIDE, pixel + 1) - np.maximum(cell, pixel)).clip(min=0)


def encode_values(values: Floats) -> str:
    """Write values (SIDE, SIDE) of at least 0 as base64 of 16 bits each, the largest as `LARGEST`."""
    scaled = np.round(values / values.max() * LARGEST) if values.max() > 0 else np.zeros_like(values)
    return base64.b64encode(scaled.astype(">u2").tobytes()).decode()


def decode_values(text: str) -> Floats:
    """Read values (SIDE, SIDE) as `encode_values` wrote them, in 0 to `LARGEST`."""
    return np.frombuffer(base64.b64decode(text), ">u2").astype(np.float64).reshape(SIDE, SIDE)


def encode_cells(mask: Mask) -> str:
    """Write a set of cells (SIDE, SIDE) as hexadecimal digits, row by row, four cells each."""
    return np.packbits(mask.ravel()).tobytes().hex()


def decode_cells(text: str) -> Mask:
    """Read a set of cells (SIDE, SIDE).

    Raises
    ------
    ForetellError
        The text is not exactly `DIGITS` hexadecimal digits in small letters.
    """
    if len(text) != DIGITS or not set(text) <= set("0123456789abcdef"):
        raise ForetellError(
            f"The brushed area is {len(text):,} characters, not {DIGITS} hexadecimal digits for {CELLS:,} cells."
        )
    return np.unpackbits(np.frombuffer(bytes.fromhex(text), np.uint8)).astype(bool).reshape(SIDE, SIDE)


def cover(places: Sequence[Sequence[float]]) -> Mask:
    """Return the cells (SIDE, SIDE) whose middle a brush covers at some places (x, y)."""
    rows, columns = np.mgrid[:SIDE, :SIDE] + 0.5
    covered = [np.hypot(columns - x * SIDE, rows - y * SIDE) <= RADIUS for x, y in places]
    return np.asarray(np.any(covered, axis=0))
