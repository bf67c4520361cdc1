"""Textures: smooth random fields and litter, drawn once and cut at random places."""

from __future__ import annotations

from functools import cache

import numpy as np
from PIL import Image, ImageDraw
from scipy.ndimage import gaussian_filter

from data.scenes.pen import SIZE

TILE = 384
"""Side of a texture tile, px; tiles wrap around."""


def noise(rng: np.random.Generator, tall: float, wide: float) -> np.ndarray:
    """(96, 96) float32 smooth Gaussian field of mean 0 and variance 1; correlation lengths in px down and across."""
    return _cut(rng, _field(tall, wide))


def clouds(rng: np.random.Generator, tall: float, wide: float, octaves: int = 4) -> np.ndarray:
    """(96, 96) float32 sum of fields, each half as coarse and half as strong as the one before; variance about 1."""
    total = np.zeros((SIZE, SIZE), dtype=np.float32)
    for k in range(octaves):
        total += noise(rng, tall / 2**k, wide / 2**k) / 2**k
    return total / np.float32(np.sqrt(sum(0.25**k for k in range(octaves))))


def litter(rng: np.random.Generator) -> np.ndarray:
    """(96, 96, 3) float32 in [0, 255]: a ground covered with fallen leaves."""
    return _cut(rng, _leaves())


def _cut(rng: np.random.Generator, tile: np.ndarray) -> np.ndarray:
    top, left = rng.integers(TILE, size=2)
    piece = tile[top : top + SIZE, left : left + SIZE]
    return piece[:, ::-1] if rng.integers(2) else piece


def _wrapped(tile: np.ndarray) -> np.ndarray:
    pad = [(0, SIZE), (0, SIZE), (0, 0)][: tile.ndim]
    return np.pad(tile, pad, mode="wrap").astype(np.float32)


@cache
def _field(tall: float, wide: float) -> np.ndarray:
    rng = np.random.default_rng([round(64 * tall), round(64 * wide)])
    field = gaussian_filter(rng.standard_normal((TILE, TILE)), (tall, wide), mode="wrap")
    return _wrapped((field - field.mean()) / field.std())


@cache
def _leaves() -> np.ndarray:
    rng, scale = np.random.default_rng(0), 2
    side = TILE * scale
    picture = Image.new("RGB", (side, side), (52, 38, 24))
    draw = ImageDraw.Draw(picture)
    along = np.linspace(0, 2 * np.pi, 15)
    blade = np.stack([np.cos(along), 0.45 * np.sin(along) * (1 + 0.3 * np.cos(along))], axis=1)
    for _ in range(3200):
        angle, length = rng.uniform(0, 2 * np.pi), scale * rng.uniform(4, 9)
        turn = length * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        centre, tone = rng.uniform(0, side, 2), rng.uniform(0.55, 1.15)
        base = np.array([(140, 92, 48), (120, 70, 36), (160, 116, 62), (98, 78, 44), (84, 92, 44)][rng.integers(5)])
        colour = tuple(int(c) for c in np.clip(base * tone, 0, 255))
        rib = tuple(int(c * 0.7) for c in colour)
        for shift in ((0, 0), (-side, 0), (0, -side), (-side, -side)):  # so that the tile wraps around
            points = blade @ turn.T + centre + shift
            draw.polygon([tuple(p) for p in points.tolist()], fill=colour, outline=rib)
            draw.line([tuple(points[0]), tuple(points[7])], fill=rib, width=scale)
    return _wrapped(np.asarray(picture.reduce(scale)))
