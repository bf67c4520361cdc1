"""Inputs and values of an image's measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from core.errors import ForetellError
from core.files import FileLimits
from core.network.classifier import Classifier
from core.teaching.kfac import KroneckerPrior
from data.types import ImageSet
from study.building.candidates import ROLE_OF_TYPE, Candidate
from study.plan.measures import IMAGE_MEASURES
from study.plan.strata import Strata
from study.workspace.seeds import seed_of

TARGETS = tuple(dict.fromkeys(ROLE_OF_TYPE.values()))
"""The roles of the sets that candidates come from."""


class MeasuredValue(NamedTuple):
    """A measure of one image and its Monte Carlo standard error, 0 where nothing is drawn; it may be infinite."""

    value: float
    error: float = 0.0


CandidateMeasure = Callable[[Candidate], MeasuredValue]


@dataclass(frozen=True)
class Ground:
    """A study's strata, classifier, image sets by role, prior and seed.

    ``base`` is the folder of the study file, ``cache`` one for what is asked of whole sets; ``limits`` are those of
    the files that the measure names.
    """

    settings: Strata
    classifier: Classifier
    sets: dict[str, ImageSet]
    prior: KroneckerPrior
    base: Path
    cache: Path
    seed: int
    limits: FileLimits | None = None

    def inputs(self, candidate: Candidate) -> Tensor:
        """Return the candidate's image as an input (1, C, H, W)."""
        return self.classifier.preprocess(self.sets[candidate.role].open(candidate.index))[None]

    def generator(self, purpose: str, candidate: Candidate) -> torch.Generator:
        """Return each image's own generator, so that its draws do not depend on the other images."""
        return torch.Generator().manual_seed(seed_of(self.seed, purpose, candidate.role, candidate.index))

    def targets(self) -> list[ImageSet]:
        """Return the sets that candidates come from."""
        return [self.sets[role] for role in TARGETS if role in self.sets]

    def unfit(self, why: str, remedy: str) -> ForetellError:
        """Return the error that the study's measure does not apply, what to do, and which others there are."""
        measure = self.settings.measure
        others = ", ".join(name for name in IMAGE_MEASURES if name != measure)
        return ForetellError(f"trials.strata: {measure} {why}. {remedy}, or take another measure: {others}.")
