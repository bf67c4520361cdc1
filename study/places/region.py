"""The region of a heatmap: the smallest set of cells that holds a stated share of its positive evidence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from core.errors import ForetellError
from study.facts import RegionFacts
from study.places.grid import CELLS, SIDE, Floats, Mask, decode_cells, decode_values, encode_cells, encode_values, pool

MANY = 1024
"""Regions kept open at once."""
ROUNDING = 1e-12
"""Relative rounding error of a sum of evidence."""


@dataclass(frozen=True, eq=False)
class Region:
    """A region, as frozen with a trial.

    Attributes
    ----------
    evidence
        Positive evidence (SIDE, SIDE) of each cell, in units of the largest / 60,000.
    share
        Share of the evidence that the region holds, at least.
    aspect
        Height of the image divided by its width.
    on_object
        Cells (SIDE, SIDE) of which the object covers at least half; None where no mask of it is known.
    """

    evidence: Floats
    share: float
    aspect: float
    on_object: Mask | None

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """The cells from the one with most evidence to the one with least; equal ones from the top left."""
        return np.argsort(-self.evidence, axis=None, kind="stable")

    @cached_property
    def ranks(self) -> NDArray[np.int64]:
        """The place (SIDE, SIDE) of each cell in `order`, from 0."""
        return np.argsort(self.order).reshape(SIDE, SIDE)

    @cached_property
    def inside(self) -> Mask:
        """Cells (SIDE, SIDE) of the region."""
        reached = np.cumsum(self.evidence.ravel()[self.order])
        return np.asarray(self.ranks <= np.searchsorted(reached, self.share * reached[-1] * (1 - ROUNDING)))

    @property
    def area(self) -> float:
        """Share of the image that the region covers."""
        return float(self.inside.mean())

    @property
    def peak(self) -> tuple[float, float]:
        """x and y, in 0 to 1, of the middle of the cell with most evidence."""
        row, column = divmod(int(self.order[0]), SIDE)
        return (column + 0.5) / SIDE, (row + 0.5) / SIDE


def make_region(
    evidence: NDArray[np.floating], share: float, aspect: float, on_object: NDArray[np.bool_] | None
) -> RegionFacts:
    """Make the facts of a region from a heatmap.

    Parameters
    ----------
    evidence
        Evidence (H, W) of each pixel for the AI's prediction; what is below 0 counts as 0.
    share
        Share of the positive evidence that the region holds, in (0, 1].
    aspect
        Height of the image divided by its width.
    on_object
        The object's mask (H, W), if it is known.

    Raises
    ------
    ForetellError
        No pixel has positive evidence.
    """
    pooled = pool(evidence.clip(min=0))
    if not pooled.max() > 0:
        raise ForetellError(
            "its heatmap has no positive evidence, so that there is no place to find. Choose another saliency.method."
        )
    covered = None if on_object is None else pool(on_object.astype(np.float64)) >= on_object.size / CELLS / 2
    written = {"share": share, "aspect": round(aspect, 6), "evidence": encode_values(pooled)}
    written |= {} if covered is None else {"on_object": encode_cells(covered)}
    area = open_region(RegionFacts.model_validate(written)).area
    return RegionFacts.model_validate({**written, "area": area})


@lru_cache(MANY)
def open_region(facts: RegionFacts) -> Region:
    """Open a region from its facts."""
    on_object = None if facts.on_object is None else decode_cells(facts.on_object)
    return Region(decode_values(facts.evidence), facts.share, facts.aspect, on_object)
