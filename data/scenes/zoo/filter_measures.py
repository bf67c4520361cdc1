"""How well each filter of a network's last convolution detects one part: part purity and location instability.

Both are about the images in which a filter's maximum is among its largest `SHARE`, with the place of that maximum. The
generator knows which part is there (`data.scenes.generator.find_parts`), which the sources ask annotators for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from data.scenes.classifier import normalise
from data.scenes.generator import USUAL_SHARE, find_parts
from data.scenes.pen import SIZE
from data.scenes.zoo.effects import CHUNK, Z
from data.scenes.zoo.material import HELD_OUT_SEED, draw_scene

IMAGES = 1_000
"""Held-out standard scenes that filters are judged on."""
SHARE = 0.1
"""Of the images: those whose maxima are above a filter's threshold."""


@dataclass(frozen=True)
class Truth:
    """What is where in N scenes.

    Attributes
    ----------
    parts
        (N, 96, 96): number of the part at each pixel, a part of one category's object or one context.
    names
        Of the parts: "fish: tail", "sea".
    landmarks
        (N, 5, 2): the centre and the corners of the object's visible box, x and y in units of the image's side; not a
        number where the object is hidden.
    """

    parts: np.ndarray
    names: tuple[str, ...]
    landmarks: np.ndarray


def draw_truth(count: int = IMAGES) -> Truth:
    """Find what is where in the first held-out standard scenes."""
    numbers: dict[str, int] = {}
    parts, landmarks = [], []
    for i in range(count):
        scene = draw_scene("standard", HELD_OUT_SEED, USUAL_SHARE, i)
        own, names = find_parts(scene)
        parts.append(np.array([numbers.setdefault(name, len(numbers)) for name in names])[own])
        landmarks.append(find_box(scene.mask))
    return Truth(np.stack(parts), tuple(numbers), np.stack(landmarks))


def find_box(mask: np.ndarray) -> np.ndarray:
    """Find the centre and the corners (5, 2) of what is True in a mask (96, 96), in units of its side."""
    if not mask.any():
        return np.full((5, 2), np.nan)
    y, x = (np.flatnonzero(mask.any(axis)) + 0.5 for axis in (1, 0))
    corners = [(left, top) for left in (x[0], x[-1]) for top in (y[0], y[-1])]
    return np.array([((x[0] + x[-1]) / 2, (y[0] + y[-1]) / 2), *corners]) / SIZE


def compute_maps(network: nn.Module, pixels: Tensor) -> Tensor:
    """Compute the outputs (N, K, h, w) of the last convolution for pixels (N, 3, 96, 96) uint8."""
    features: Any = network.features
    with torch.inference_mode():
        return torch.cat([features(normalise(part)) for part in pixels.split(CHUNK)])


def measure_filters(maps: Tensor, truth: Truth) -> dict[str, np.ndarray]:
    """Measure each filter's outputs (N, K, h, w) against what is where.

    Returns
    -------
    dict
        ``purity`` (K,), the share of the chosen images whose maximum is on the part most often hit; ``instability``
        (K,), the standard deviation over these images of the distance to a landmark, mean over landmarks; ``part``
        (K,), the number of the part most often hit. Not a number, or -1, where a filter is 0 in most of the images.

    Notes
    -----
    Cell (i, j) sees a square of pixels whose middle is at (i, j) times the stride, because each convolution of a stride
    of 2 with a border of 1 is centred on every other place. The part of a maximum is what covers most of the cell's
    stride x stride pixels around this middle.
    """
    stride = SIZE // maps.shape[2]
    heights, cells = maps.flatten(2).max(2)
    chosen = (heights >= heights.quantile(1 - SHARE, 0)) & (heights > 0)
    chosen &= torch.from_numpy(~np.isnan(truth.landmarks).any((1, 2)))[:, None]
    figures: dict[str, list[float]] = {"purity": [], "instability": [], "part": []}
    for k in range(maps.shape[1]):
        rows = torch.nonzero(chosen[:, k])[:, 0].numpy()
        y, x = np.divmod(cells[rows, k].numpy(), maps.shape[3])
        measured = _measure_one(rows, stride * x, stride * y, stride, truth)
        for name, value in zip(figures, measured, strict=True):
            figures[name].append(value if len(rows) > SHARE * len(maps) / 2 else -1 if name == "part" else math.nan)
    return {name: np.array(values) for name, values in figures.items()}


def _measure_one(
    rows: np.ndarray, x: np.ndarray, y: np.ndarray, stride: int, truth: Truth
) -> tuple[float, float, float]:
    """Return purity, instability and part of a filter with maxima at (x, y), px, of these rows."""
    if not len(rows):
        return math.nan, math.nan, -1
    hits = [read_part(truth.parts[row], left, top, stride) for row, left, top in zip(rows, x, y, strict=True)]
    counts = np.bincount(hits)
    places = (np.stack([x, y], 1) + 0.5) / SIZE
    distances = np.linalg.norm(places[:, None] - truth.landmarks[rows], axis=2)
    return float(counts.max() / len(hits)), float(distances.std(0).mean()), int(counts.argmax())


def read_part(parts: np.ndarray, x: int, y: int, stride: int) -> int:
    """Return the part that covers most of a square of stride x stride pixels around (x, y), inside the image."""
    half = stride // 2
    return int(np.bincount(parts[max(0, y - half) : y + half, max(0, x - half) : x + half].ravel()).argmax())


def compare(own: np.ndarray, other: np.ndarray) -> list[float]:
    """Return the mean difference of two networks' filters (K,), paired, with the limits of its 95% interval."""
    differences = (own - other)[~np.isnan(own - other)]
    mean, half = differences.mean(), Z * differences.std(ddof=1) / math.sqrt(len(differences))
    return [round(float(value), 4) for value in (mean, mean - half, mean + half)]


def summarise(values: np.ndarray) -> list[float]:
    """Return the mean over filters (K,) with the limits of its 95% interval."""
    return compare(values, np.zeros_like(values))
