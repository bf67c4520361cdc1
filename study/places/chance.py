"""Chance by permutation of images: what a participant's marks would score on the regions of the other images.

Participants look at the middle of images, and so do networks. A mark on one image is therefore scored against the
region of each other image of the study; the mean over them is what the mark would score if it had nothing to do with
its own image (all permutations that pair it with another one, not a sample of them).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from study.bundle import Trial
from study.places.marks import Mark
from study.places.region import open_region

CHANCE, IOU, PERMUTED_IOU = "chance", "iou", "permuted_iou"
"""Names of scores: probability of a correct response by chance, and the intersection over union, and its chance."""


class Permutation:
    """The regions of a study's trials, and what a mark scores on them."""

    def __init__(self, trials: Iterable[Trial]) -> None:
        placed = {trial.assets.target: open_region(trial.region) for trial in trials if trial.region is not None}
        self._images = np.array([*placed])
        self._inside = np.array([region.inside for region in placed.values()])
        self._ranks = np.array([region.ranks for region in placed.values()])
        self._kept: dict[tuple[str, str], dict[str, float]] = {}

    def measure(self, trial: Trial, mark: Mark) -> dict[str, float]:
        """Return the scores of a mark on a trial, and their chance, by name; none of a trial without a region."""
        if trial.region is None:
            return {}
        key = (trial.id, mark.text)
        if key not in self._kept:
            self._kept[key] = {**mark.measure(open_region(trial.region)), **self._permute(trial, mark)}
        return self._kept[key]

    def _permute(self, trial: Trial, mark: Mark) -> dict[str, float]:
        others = self._images != trial.assets.target
        if not others.any():
            return {}
        permuted = {CHANCE: float(mark.hits(self._inside[others]).mean())}
        overlap = mark.overlap(self._ranks[others])
        return permuted if overlap is None else {**permuted, PERMUTED_IOU: float(overlap.mean())}
