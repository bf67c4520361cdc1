"""The contexts of the scenes. Adding one is one function and one line of `CONTEXTS`.

A context is ``draw(rng) -> (96, 96, 3)`` float32, roughly in [0, 255] (clipped once light has fallen on it).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from data.scenes.noise import clouds, litter, noise
from data.scenes.pen import SIZE

Y, X = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32)


def sea(rng: np.random.Generator) -> np.ndarray:
    """Waves with white crests, finer towards the top."""
    depth = (Y / SIZE)[..., None]
    deep = _near(rng, (16, 72, 128), 14)
    pale = _near(rng, (52, 138, 176), 14)
    waves = 0.6 * noise(rng, 2.5, 10) * (0.5 + Y / SIZE) + 0.5 * noise(rng, 1.2, 5)
    water = pale + (deep - pale) * depth + 17 * waves[..., None]
    crests = np.clip(noise(rng, 1.2, 7) + 0.6 * waves - rng.uniform(1.4, 2.0), 0, 1)
    return _mix(water, (228, 242, 248), 0.8 * crests)


def sky(rng: np.random.Generator) -> np.ndarray:
    """Blue, paler towards the horizon, with clouds."""
    height = (Y / SIZE)[..., None]
    zenith, horizon = _near(rng, (52, 120, 205), 16), _near(rng, (160, 206, 240), 12)
    blue = zenith + (horizon - zenith) * height**1.3
    puffs = clouds(rng, 13, 22)
    cover = np.clip(0.75 * (puffs - rng.uniform(-0.2, 0.9)), 0, 0.95)
    lit = 250 - 16 * np.clip(noise(rng, 6, 8), -1, 2)
    return _mix(blue, np.stack([lit - 4, lit - 2, lit + 3], axis=-1), cover)


def meadow(rng: np.random.Generator) -> np.ndarray:
    """Grass with small flowers."""
    blades = 0.8 * noise(rng, 5, 0.8) + 0.6 * noise(rng, 2.5, 0.6)
    patches = noise(rng, 14, 18)
    green = _near(rng, (78, 136, 42), 14) + np.stack(
        [26 * blades + 14 * patches, 30 * blades + 10 * patches, 14 * blades], axis=-1
    )
    for _ in range(int(rng.integers(0, 14))):
        colour = [(250, 248, 235), (248, 214, 60), (230, 130, 190)][rng.integers(3)]
        green = _mix(green, colour, _dot(rng, rng.uniform(0.9, 1.7)))
    return green


def road(rng: np.random.Generator) -> np.ndarray:
    """Asphalt with a marking and a kerb or cracks."""
    grey = _near(rng, (104, 104, 108), 10)
    asphalt = grey + (9 * noise(rng, 0.5, 0.5) + 7 * noise(rng, 2, 2) + 8 * noise(rng, 18, 18))[..., None]
    angle = rng.choice([0.0, np.pi / 2]) + rng.normal(0, 0.25)
    across, along = _axes(angle, *rng.uniform(20, 76, 2))
    dashed = np.clip(8 * np.sin(along * 2 * np.pi / rng.uniform(42, 64)) + 3, 0, 1) if rng.uniform() < 0.6 else 1.0
    worn = np.clip(0.85 + 0.25 * noise(rng, 1, 1), 0, 1)
    paint = (238, 236, 228) if rng.uniform() < 0.65 else (236, 190, 52)
    asphalt = _mix(asphalt, paint, _band(across, rng.uniform(2.2, 3.6)) * dashed * worn)
    side, far = rng.choice([-1.0, 1.0]), rng.uniform(40, 56)
    kerb = _band(side * across - far - 4, 4.0)
    verge = np.clip(side * across - far - 8, 0, 1)
    asphalt = _mix(asphalt, _near(rng, (176, 172, 164), 8) + 6 * noise(rng, 0.8, 0.8)[..., None], kerb)
    return _mix(asphalt, _rgb(92, 118, 58) + 22 * noise(rng, 2, 0.8)[..., None], verge)


def beach(rng: np.random.Generator) -> np.ndarray:
    """Sand with ripples, grains and shells."""
    across, _ = _axes(rng.uniform(1.2, 1.9), 48, 48)
    ripples = np.sin(across * 2 * np.pi / rng.uniform(9, 16) + 1.4 * noise(rng, 12, 16))
    sand = _near(rng, (226, 200, 150), 9) + (7 * noise(rng, 0.5, 0.5) + 9 * ripples + 8 * noise(rng, 12, 16))[..., None]
    for _ in range(int(rng.integers(2, 9))):
        colour = [(250, 240, 226), (188, 140, 112), (150, 136, 122)][rng.integers(3)]
        sand = _mix(sand, colour, _dot(rng, rng.uniform(1.0, 2.2)))
    return sand


def brick(rng: np.random.Generator) -> np.ndarray:
    """A wall of bricks, each of its own tone."""
    tall, wide, top, left = rng.uniform(10, 14), rng.uniform(22, 30), *rng.uniform(0, 30, 2)
    row, down = np.divmod(Y + top, tall)
    column, over = np.divmod(X + left + 0.5 * wide * (row % 2), wide)
    joint = np.minimum(np.minimum(down, tall - down), np.minimum(over, wide - over))
    tones = rng.normal(0, 1, (16, 16)).astype(np.float32)[row.astype(int) % 16, column.astype(int) % 16]
    clay = _near(rng, (164, 78, 58), 14) + (13 * tones + 8 * noise(rng, 0.7, 0.7) + 6 * noise(rng, 8, 8))[..., None]
    clay = clay * np.where(down < 2.2, 1.1, 1.0)[..., None]
    mortar = _near(rng, (206, 198, 186), 10) + 8 * noise(rng, 0.7, 0.7)[..., None]
    return _mix(clay, mortar, np.clip(1.6 - joint, 0, 1))


def night(rng: np.random.Generator) -> np.ndarray:
    """Dark sky with a band of haze, small stars and sometimes a moon."""
    dark = _near(rng, (12, 14, 40), 5) + _rgb(6, 8, 22) * (Y / SIZE)[..., None]
    across, _ = _axes(rng.uniform(0, np.pi), *rng.uniform(20, 76, 2))
    haze = np.exp(-((across / 22) ** 2)) * np.clip(0.7 + 0.6 * clouds(rng, 10, 10), 0, 2)
    dark = dark + np.stack([20 * haze, 16 * haze, 36 * haze], axis=-1)
    glow = np.zeros((SIZE, SIZE), dtype=np.float32)
    places = rng.integers(1, SIZE - 1, (int(rng.integers(35, 80)), 2))
    power = rng.uniform(0.15, 1.0, len(places)).astype(np.float32) ** 2
    for dy, dx, part in ((0, 0, 1.0), (0, 1, 0.35), (1, 0, 0.35), (0, -1, 0.35), (-1, 0, 0.35)):
        glow[places[:, 0] + dy, places[:, 1] + dx] += np.float32(part) * power
    dark = _mix(dark, (255, 250, 232), np.clip(glow, 0, 1))
    if rng.uniform() < 0.35:
        dark = _mix(dark, _rgb(236, 232, 206) + 10 * noise(rng, 2, 2)[..., None], _dot(rng, rng.uniform(7, 11)))
    return dark


def wood(rng: np.random.Generator) -> np.ndarray:
    """Planks of a table, with grain and seams."""
    upright, plank = rng.uniform() < 0.5, rng.uniform(22, 38)
    index, over = np.divmod(Y + rng.uniform(0, 40), plank)
    tones = rng.normal(0, 1, 8).astype(np.float32)[index.astype(int)]
    rings = np.sin(Y * 0.55 + 2.6 * noise(rng, 5, 30) + 3 * index)
    grain = 10 * rings + 9 * noise(rng, 0.7, 14) + 11 * tones + 5 * noise(rng, 0.5, 3)
    boards = _near(rng, (172, 116, 66), 12) + grain[..., None] * _rgb(1.0, 0.85, 0.6)
    boards = boards * (1 - 0.55 * np.clip(1.7 - np.minimum(over, plank - over), 0, 1))[..., None]
    return boards.swapaxes(0, 1) if upright else boards


def snow(rng: np.random.Generator) -> np.ndarray:
    """Drifts with blue shade, sparkles, falling flakes."""
    drift = clouds(rng, 9, 20, 3)
    white = _near(rng, (226, 234, 244), 5) + drift[..., None] * _rgb(13, 10, 5) + 4 * noise(rng, 0.6, 0.6)[..., None]
    hollow = np.clip(-drift - rng.uniform(0.2, 0.7), 0, 1)
    white = _mix(white, (166, 190, 222), 0.6 * hollow)
    for _ in range(int(rng.integers(4, 16))):
        white = _mix(white, (255, 255, 255), 0.85 * _dot(rng, rng.uniform(0.8, 2.0)))
    return white


def forest(rng: np.random.Generator) -> np.ndarray:
    """The floor of a forest: fallen leaves, moss, patches of light."""
    floor = litter(rng) * _near(rng, (1.0, 1.0, 1.0), 0.07) * (1 + 0.16 * noise(rng, 12, 14))[..., None]
    moss = np.clip(0.8 * (noise(rng, 8, 10) - rng.uniform(0.5, 1.3)), 0, 0.75)
    return _mix(floor, _rgb(72, 94, 36) + 18 * noise(rng, 0.8, 0.8)[..., None], moss)


CONTEXTS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "beach": beach,
    "brick": brick,
    "forest": forest,
    "meadow": meadow,
    "night": night,
    "road": road,
    "sea": sea,
    "sky": sky,
    "snow": snow,
    "wood": wood,
}


def _rgb(*bands: float) -> np.ndarray:
    return np.array(bands, dtype=np.float32)


def _near(rng: np.random.Generator, colour: tuple[float, float, float], spread: float) -> np.ndarray:
    """A colour near the given one: brightness and, half as much, each channel vary."""
    return (np.asarray(colour) + spread * (rng.normal() + 0.5 * rng.normal(size=3))).astype(np.float32)


def _mix(below: np.ndarray, above: np.ndarray | tuple[int, int, int], cover: np.ndarray) -> np.ndarray:
    """Lay ``above`` over ``below`` where ``cover`` (96, 96) is 1."""
    return below + (np.asarray(above, dtype=np.float32) - below) * cover[..., None].astype(np.float32)


def _dot(rng: np.random.Generator, radius: float) -> np.ndarray:
    """(96, 96) cover of a disc at a random place."""
    y, x = rng.uniform(0, SIZE, 2)
    return np.clip(radius + 0.5 - np.hypot(Y - np.float32(y), X - np.float32(x)), 0, 1)


def _axes(angle: float, y: float, x: float) -> tuple[np.ndarray, np.ndarray]:
    """Distances (96, 96) across and along a line through (y, x) at ``angle``, px."""
    cos, sin = np.float32(np.cos(angle)), np.float32(np.sin(angle))
    dy, dx = Y - np.float32(y), X - np.float32(x)
    return cos * dx + sin * dy, cos * dy - sin * dx


def _band(across: np.ndarray, half: float) -> np.ndarray:
    """Cover of a stripe of half width ``half`` px."""
    return np.clip(half + 0.5 - np.abs(across), 0, 1)
