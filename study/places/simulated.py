"""Marks of simulated participants: in the region where they know it, else near the middle of the image."""

from __future__ import annotations

import numpy as np

from study.facts import RegionFacts
from study.places.grid import CELLS, SIDE, Floats, cover
from study.places.marks import Brush, Kind, Mark, Point, is_right
from study.places.region import Region, open_region

SPREAD = 0.2
"""Standard deviation of marks around the middle, in widths and heights of the image."""
DABS = 6
"""Places that a brush goes over."""
DRIFT = 0.05
"""Standard deviation of the places of one brush around its middle, in widths and heights of the image."""
TRIES = 200


def compute_central_hits(facts: RegionFacts | None) -> float:
    """Compute how often a point near the middle is in a region, by a normal density on the cells; 0 without one."""
    return 0.0 if facts is None else float(_weigh_cells()[open_region(facts).inside].sum())


def _weigh_cells() -> Floats:
    middles = (np.arange(SIDE) + 0.5) / SIDE
    density = np.exp(-0.5 * ((middles - 0.5) / SPREAD) ** 2)
    weights = np.outer(density, density)
    return np.asarray(weights / weights.sum())


def draw_mark(kind: Kind, facts: RegionFacts, right: bool, rng: np.random.Generator) -> Mark:
    """Draw a mark that is correct, or one that is not: the first of many tries, else the nearest to it that exists."""
    region = open_region(facts)
    for _ in range(TRIES):
        mark = _try_mark(kind, region, right, rng)
        if is_right(mark, region) == right:
            return mark
    cells = region.inside if right or region.inside.all() else ~region.inside
    return Brush(cells) if kind == "cells" else _pick_point(cells.astype(np.float64), rng)


def _try_mark(kind: Kind, region: Region, right: bool, rng: np.random.Generator) -> Mark:
    """Draw a mark by the evidence in the region, or near the middle."""
    weights = region.evidence * region.inside if right else _weigh_cells()
    if kind == "point":
        return _pick_point(weights, rng)
    if right:
        places = [_pick_point(weights, rng) for _ in range(DABS)]
        return Brush(cover([(place.x, place.y) for place in places]))
    middle = _pick_point(weights, rng)
    return Brush(cover(rng.normal((middle.x, middle.y), DRIFT, (DABS, 2)).clip(0, 1).tolist()))


def _pick_point(weights: Floats, rng: np.random.Generator) -> Point:
    """Pick a cell in proportion to its weight, and a point in it."""
    row, column = divmod(int(rng.choice(CELLS, p=weights.ravel() / weights.sum())), SIDE)
    x, y = (np.array([column, row]) + rng.uniform(0.01, 0.99, 2)) / SIDE
    return Point(round(float(x), 5), round(float(y), 5))
