"""The part of a photograph that a network sees, measured by transforming images of coordinates."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

if TYPE_CHECKING:
    from torch import Tensor  # the page of results reads geometries and must not wait for torch

Floats = NDArray[np.floating[Any]]
Transforms = Callable[[Image.Image], "Tensor"]

SEEN = 0.1
"""A pixel of the input shows the photograph where white and black differ by this share of the most, squared."""
FEWEST = 0.02
"""Smallest share of the input that must show the photograph."""
AFFINE = 0.9
"""Smallest share of those pixels that must lie where the fitted transform says."""
LEVELS = 255
ROUNDS = 4
SPREAD = (0.7548776662466927, 0.5698402909980532)
"""Steps along rows and columns whose multiples fill the numbers from 0 to 1 most evenly (Roberts 2018)."""
POINTS = 8192
"""About how many pixels the transform is fitted to."""
SNAP = 0.1
"""Share of a pixel, or of a grey level's width, by which an edge may be off: the measurement is no finer."""
PROBE = 64
MOST_SAMPLES = 32
"""Samples along a side of a pixel at most: those of a photograph of 7,000 px shown on 224."""
LINEAR = 0.03
"""Largest deviation of the middle grey from the middle of black and white, as a share of their distance."""


@dataclass(frozen=True)
class Geometry:
    """The affine way from a network's input back to a photograph.

    Attributes
    ----------
    size
        (width, height) of the photograph, px.
    shape
        (H, W) of the input, px.
    matrix
        (2, 3): the photograph's (x, y) is ``matrix @ (column, row, 1)``. Coordinates are continuous: pixel k covers
        k to k + 1.
    """

    size: tuple[int, int]
    shape: tuple[int, int]
    matrix: tuple[tuple[float, float, float], tuple[float, float, float]]

    def locate(self, rows: Floats, columns: Floats) -> tuple[Floats, Floats]:
        """Return the photograph's (y, x) of continuous rows and columns of the input, which broadcast."""
        (a, b, c), (d, e, f) = self.matrix
        return d * columns + e * rows + f, a * columns + b * rows + c

    def pixels(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """Return the photograph's (row, column) under the middle of pixels of the input, the nearest one it has."""
        places = self.locate(rows + 0.5, columns + 0.5)
        return tuple(
            np.clip(np.floor(v), 0, n - 1).astype(np.int64) for v, n in zip(places, self.size[::-1], strict=True)
        )

    def resample(self, values: Floats) -> Floats:
        """Return values (height, width) of the photograph's pixels as the input shows them, (H, W) float32.

        Each is the mean of bilinear samples spread evenly over a pixel of the input, at least one for every pixel of
        the photograph there; 0 where the input lies outside of the photograph.
        """
        (height, width), count = self.shape, self._samples
        steps = (np.arange(count) + 0.5) / count
        columns = (np.arange(width)[:, None] + steps).ravel()
        total: Floats = np.zeros(self.shape)
        for step in steps:  # one line of samples of each row of pixels at a time: a photograph can be large
            resampled = _bilinear(values, *self.locate((np.arange(height) + step)[:, None], columns[None]))
            total += resampled.reshape(height, width, count).mean(2)
        return (total / count).astype(np.float32)

    @property
    def _samples(self) -> int:
        """Return how many samples along a side of a pixel of the input meet every pixel of the photograph."""
        return min(MOST_SAMPLES, max(2, math.ceil(max(abs(a) + abs(b) for a, b, _ in self.matrix))))

    @property
    def box(self) -> tuple[float, float, float, float] | None:
        """(left, top, right, bottom) of the input in the photograph; None where it is turned or mirrored."""
        (a, b, c), (d, e, f) = self.matrix
        height, width = self.shape
        if max(abs(b) * height, abs(d) * width) > 0.5 or a <= 0 or e <= 0:
            return None
        edges = (c, f, a * width + c, e * height + f)
        steps = (a, e, a, e)
        limits = (*self.size, *self.size)
        return tuple(map(_snap_edge, edges, limits, steps))  # type: ignore[return-value]


def _bilinear(values: Floats, y: Floats, x: Floats) -> Floats:
    """Interpolate values (height, width), each in the middle of its pixel, at continuous (y, x); 0 outside."""
    y, x = np.broadcast_arrays(y, x)
    height, width = values.shape
    inside = (y >= 0) & (y <= height) & (x >= 0) & (x <= width)
    rows, columns = np.clip(y - 0.5, 0, height - 1), np.clip(x - 0.5, 0, width - 1)
    top, left = np.floor(rows).astype(np.int64), np.floor(columns).astype(np.int64)
    down, right = np.minimum(top + 1, height - 1), np.minimum(left + 1, width - 1)
    v, h = rows - top, columns - left
    upper = values[top, left] * (1 - h) + values[top, right] * h
    lower = values[down, left] * (1 - h) + values[down, right] * h
    interpolated: Floats = np.where(inside, upper * (1 - v) + lower * v, 0.0)
    return interpolated


def _snap_edge(edge: float, limit: int, step: float) -> float:
    """Return the photograph's own edge, or a whole pixel, where the measurement cannot tell them apart."""
    for border in (0.0, float(limit)):
        if abs(edge - border) <= SNAP * max(1.0, step, limit / LEVELS):
            return border
    return float(round(edge)) if abs(edge - round(edge)) <= SNAP else edge


def measure_geometry(transforms: Transforms, size: tuple[int, int]) -> Geometry | None:
    """Measure where the transforms take each pixel of their result from, in photographs of ``size`` (width, height).

    Two images whose grey rises evenly from left to right and from top to bottom go through them; black and white say
    what the greys have become. None where no affine transform explains the result.
    """
    width, height = size
    flat = [np.full((height, width), level, np.uint8) for level in (0, LEVELS)]
    rising = _rising(height, width), _rising(width, height).T
    black, white, xs, ys = (_transform_grey(transforms, grey) for grey in (*flat, *rising))
    span = white - black
    weight = (span**2).sum(0)
    if not (np.isfinite([span, xs, ys]).all() and weight.max() > 0 and _keep_greys_even(transforms)):
        return None
    seen = weight > SEEN * weight.max()
    places = np.stack(np.nonzero(seen), 1)[:: _step(seen.shape)]
    rows, columns = places.T
    coordinates = [((one - black) * span).sum(0)[rows, columns] / weight[rows, columns] for one in (xs, ys)]
    matrix = _affine(places[:, ::-1] + 0.5, np.stack(coordinates, 1) * size, size)
    if matrix is None or seen.mean() < FEWEST:
        return None
    return Geometry(size, seen.shape, tuple(map(tuple, matrix.tolist())))  # type: ignore[arg-type]


def _step(shape: tuple[int, ...]) -> int:
    """Return a stride over (H, W) that leaves about `POINTS`, and meets every column."""
    step = max(1, shape[0] * shape[1] // POINTS)
    while math.gcd(step, shape[1]) > 1:
        step += 1
    return step


def _keep_greys_even(transforms: Transforms) -> bool:
    """Tell whether the grey halfway between black and white stays there."""
    black, middle, white = (_transform_grey(transforms, np.full((PROBE, PROBE), v, np.uint8)) for v in (0, 128, LEVELS))
    span = white - black
    level = ((middle - black) * span).sum() / (span**2).sum()
    return bool(abs(level - 128 / LEVELS) <= LINEAR)


def _rising(rows: int, columns: int) -> NDArray[np.uint8]:
    """Return grey (rows, columns) that rises evenly from column to column.

    Grey levels are whole numbers: which way each pixel is rounded is spread so that neighbours average to the truth.
    """
    steps = [(np.arange(n) * step % 1).astype(np.float32) for n, step in zip((rows, columns), SPREAD, strict=True)]
    even = (LEVELS * (np.arange(columns) + 0.5) / columns).astype(np.float32)
    grey: NDArray[np.uint8] = (even + (steps[0][:, None] + steps[1]) % 1).astype(np.uint8)
    return grey


def _transform_grey(transforms: Transforms, grey: NDArray[np.uint8]) -> Floats:
    return transforms(Image.fromarray(grey).convert("RGB")).detach().cpu().double().numpy()


def _affine(places: Floats, coordinates: Floats, size: tuple[int, int]) -> Floats | None:
    """Fit (2, 3) from (column, row) to ``coordinates``, both (n, 2); None where too few of them lie on it.

    What resizing does at the photograph's edges is left out: coordinates stop rising there.
    """
    given, extent = np.column_stack([places, np.ones(len(places))]), np.array(size)
    kept = np.ones(len(places), dtype=bool)
    for _ in range(ROUNDS):
        if kept.sum() < FEWEST * len(places):
            return None
        matrix: Floats = np.linalg.lstsq(given[kept], coordinates[kept], rcond=None)[0].T
        steps, expected = np.abs(matrix[:, :2]).sum(1), given @ matrix.T
        inner = ((expected > 1 + 2 * steps) & (expected < extent - 1 - 2 * steps)).all(1)
        near = (np.abs(coordinates - expected) <= np.maximum(1.0 + 1.5 * extent / LEVELS, 0.5 * steps)).all(1)
        kept = inner & near
    known = inner.any() and near[inner].mean() >= AFFINE and abs(np.linalg.det(matrix[:, :2])) > 1e-6
    return matrix if known else None
