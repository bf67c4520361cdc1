"""Bars: a horizontal or vertical bar, red or green, from one integer.

``render(seed, colour="green")`` is the intervention do(colour = green): the same bar as ``render(seed)``, point for
point, in another colour. The data BARS of Goyal et al. 2019 (arXiv:1907.07165), in a form of our own: the logarithm
of a bar's width over its height is normal, about +`ASPECT` if it is horizontal and -`ASPECT` if it is vertical. A few
bars are nearly square, and for those the colour is the better evidence wherever it goes with the class. What the best
observer would owe to the colour is therefore known in closed form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from PIL import Image

from data.errors import DataError

SIZE = 24
ORIENTATIONS = ("horizontal", "vertical")
COLOURS: Mapping[str, int] = MappingProxyType({"red": 0, "green": 1})
"""Names of the colours, and the channel that each lights."""
ASPECT, SPREAD = 0.8, 0.58
"""Mean and standard deviation of the logarithm of width over height, of a horizontal bar."""
GROUND, NOISE = 40.0, 5.0
"""Grey level of the background, and standard deviation of the noise of every value."""


@dataclass(frozen=True)
class Bar:
    """One image (24, 24) RGB with known parameters; ``render(seed, orientation=..., colour=...)`` reproduces it."""

    image: Image.Image
    orientation: str
    colour: str
    seed: int


def render(
    seed: int,
    *,
    orientation: str | None = None,
    colour: str | None = None,
    red: tuple[float, float] = (0.5, 0.5),
) -> Bar:
    """Draw the bar of an integer.

    Parameters
    ----------
    seed
        Any non-negative integer.
    orientation, colour
        Interventions: None leaves the choice to the seed.
    red
        Share of red among the horizontal and among the vertical bars, where the seed chooses the colour.

    Raises
    ------
    DataError
        Unknown orientation or colour, or a share outside 0 to 1.
    """
    if not all(0 <= share <= 1 for share in red):
        raise DataError(f"Shares of red {red} are out of range: choose them between 0 and 1.")
    chance, shape, grain = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(3))
    lying = _check_name(orientation, ORIENTATIONS) or ORIENTATIONS[chance.integers(2)]
    drawn = "red" if chance.random() < red[ORIENTATIONS.index(lying)] else "green"
    hue = _check_name(colour, tuple(COLOURS)) or drawn
    pixels = GROUND + NOISE * grain.normal(size=(SIZE, SIZE, 3))
    cover, light = _bar(lying, shape)
    pixels[..., COLOURS[hue]] += light * cover
    return Bar(Image.fromarray(np.clip(np.rint(pixels), 0, 255).astype(np.uint8), "RGB"), lying, hue, seed)


def _bar(orientation: str, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Cover (24, 24) in [0, 1] and brightness of a bar near the middle."""
    x, y = rng.uniform(SIZE / 2 - 1, SIZE / 2 + 1, 2)
    side, log_aspect = np.sqrt(rng.uniform(36, 64)), ASPECT + SPREAD * rng.normal()
    log_aspect = log_aspect if orientation == "horizontal" else -log_aspect
    across, down = (_within(at, side * np.exp(sign * log_aspect / 2)) for at, sign in ((x, 1), (y, -1)))
    return down[:, None] * across[None, :], rng.uniform(120, 200)


def _within(centre: float, length: float) -> np.ndarray:
    """How much of each pixel (24,) a stretch covers."""
    return np.clip(length / 2 - np.abs(np.arange(SIZE) + 0.5 - centre) + 0.5, 0, 1)


def _check_name(name: str | None, names: tuple[str, ...]) -> str | None:
    if name is not None and name not in names:
        raise DataError(f"Bars are not {name!r}. Known: {', '.join(names)}.")
    return name
