"""Regions of heatmaps that are known: for bundles of tests whose responses are places."""

from __future__ import annotations

import numpy as np

from study.facts import RegionFacts
from study.places.grid import SIDE
from study.places.region import make_region


def plant_region(index: int) -> RegionFacts:
    """Plant all evidence evenly in a quadrant of the image, one after the other: all of it is the region."""
    evidence = np.zeros((SIDE, SIDE))
    row, column = (SIDE // 2 * part for part in divmod(index % 4, 2))
    evidence[row : row + SIDE // 2, column : column + SIDE // 2] = 1.0
    return make_region(evidence, share=1.0, aspect=1.0, on_object=evidence > 0)
