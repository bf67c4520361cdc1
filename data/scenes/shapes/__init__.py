"""The categories of the scenes. Adding one is one function and one line of `CATEGORIES`.

A shape draws itself with the pen in unit coordinates (x right, y down, about [-1, 1]), upright and facing right; its
parts vary with the generator ``rng``. Pose, light and context are not its business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from data.scenes.pen import Pen, Position
from data.scenes.shapes import living, made


@dataclass(frozen=True)
class Category:
    """One kind of object.

    Attributes
    ----------
    draw
        ``draw(pen, rng)``.
    context
        Name of the context it is usually seen in.
    radius
        Smallest and largest half extent, px: an object covers about 12 to 35 % of the image.
    tilt
        Largest rotation either way, radians.
    """

    draw: Callable[[Pen, np.random.Generator], None]
    context: str
    radius: Position
    tilt: float


CATEGORIES: dict[str, Category] = {
    "balloon": Category(made.balloon, "sky", (28, 40), 0.25),
    "bird": Category(living.bird, "sky", (29, 42), 0.45),
    "boat": Category(made.boat, "sea", (30, 42), 0.25),
    "car": Category(made.car, "road", (29, 42), 0.3),
    "cat": Category(living.cat, "brick", (26, 38), 0.25),
    "cup": Category(made.cup, "wood", (24, 35), 0.35),
    "fish": Category(living.fish, "sea", (28, 42), 0.6),
    "flower": Category(living.flower, "meadow", (29, 42), 0.4),
    "house": Category(made.house, "snow", (25, 36), 0.15),
    "key": Category(made.key, "wood", (34, 46), 3.14),
    "leaf": Category(living.leaf, "forest", (28, 42), 3.14),
    "mushroom": Category(living.mushroom, "forest", (25, 37), 0.35),
    "snowman": Category(made.snowman, "snow", (28, 41), 0.25),
    "star": Category(made.star, "night", (27, 40), 0.6),
    "tree": Category(living.tree, "meadow", (28, 40), 0.2),
    "umbrella": Category(made.umbrella, "beach", (27, 40), 0.5),
}
"""In the order of the network's outputs (alphabetical)."""
