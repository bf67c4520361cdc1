"""What a build asks of those that make its trials: of predictions of the AI, of units, or of attributes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from core.types import Progress
from study.building.attributes import AttributeMaker
from study.building.names import make_unit_maker
from study.building.predictions import PredictionMaker
from study.bundle import Trial
from study.network.sources import Sources


class TrialMaker(Protocol):
    """The plan of a study's trials, and what makes each of them."""

    @property
    def trials(self) -> Sequence[Any]:
        """The planned trials; each has an ``id``."""
        ...

    @property
    def practice(self) -> Sequence[Any]:
        """Those for practice."""
        ...

    @property
    def omissions(self) -> tuple[dict[str, str], ...]:
        """The trials that could not be planned, and why."""
        ...

    @property
    def repeats(self) -> dict[str, str]:
        """Near-duplicates of the pool that were left out, each with the image that it repeats."""
        ...

    def make(self, planned: Any, progress: Progress) -> Trial:
        """Make one trial; its assets are on disk when it returns."""
        ...

    def describe(self) -> dict[str, Any]:
        """Describe what is frozen with the classifier."""
        ...

    def compare(self) -> dict[str, str]:
        """Describe what is said with the environment and is no part of the study's identity."""
        ...


def make_trial_maker(sources: Sources, assets: Path, cache: Path, progress: Progress) -> TrialMaker:
    """Plan the trials of a study.

    Raises
    ------
    ForetellError
        The images or the network do not give the trials that the study file asks for.
    """
    maker: TrialMaker
    if sources.config.task.of_units:
        maker = make_unit_maker(sources, assets, cache, progress)
    elif sources.config.task.of_attributes:
        maker = AttributeMaker(sources, assets, cache, progress)
    else:
        maker = PredictionMaker(sources, assets, cache, progress)
    return maker
