"""Trials that ask what a unit of the network responds to: its references alone, one trial for each unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core.types import Progress
from study.building.units import UnitMaker
from study.bundle import Trial, TrialAssets
from study.facts import HeatmapFacts, TeachingFacts
from study.network.sources import Sources


@dataclass(frozen=True)
class PlannedName:
    """A trial before it is drawn: a unit, and the images of the pool that activate it least and most, by index."""

    id: str
    channel: int
    least: tuple[int, ...]
    most: tuple[int, ...]


class NameMaker(UnitMaker):
    """Chooses and draws the trials of a study in which units are named."""

    def make(self, planned: PlannedName, progress: Progress) -> Trial:  # type: ignore[override]
        """Draw one trial; its assets are on disk when it returns."""
        del progress
        pool, own = self.sources.sets["pool"], self.pool[:, planned.channel]
        low, high = (float(own[list(side)].mean()) for side in (planned.least, planned.most))
        correct, incorrect = self.sources.config.task.choices or ()
        return Trial(
            id=planned.id,
            trial_type="unit",
            target=correct,
            alternative=incorrect,
            truth="",
            options=(correct, incorrect),
            source=f"{pool.name}/{pool.ids[planned.most[0]]}",
            assets=TrialAssets(
                target=self.folder.write(self._draw_grid(planned.least)),
                target_map=self.folder.write(self._draw_grid(planned.most)),
                examples=(),
            ),
            teaching=TeachingFacts(),
            saliency=HeatmapFacts(),
            unit=self._describe_unit(planned.channel, (low, high), planned.least, planned.most),
        )

    def _plan(self, channels: int) -> tuple[tuple[PlannedName, ...], tuple[PlannedName, ...]]:  # type: ignore[override]
        asked, others = self._choose_channels(channels)
        return self._name_units("t", asked), self._name_units("p", others)

    def _name_units(self, letter: str, channels: Sequence[int]) -> tuple[PlannedName, ...]:
        """Give the trials of units ids in order."""
        return tuple(
            PlannedName(f"{letter}{number:03d}", channel, *self._find_references(channel))
            for number, channel in enumerate(channels)
        )

    def _is_usable(self, channel: int) -> bool:
        return self._has_references(channel)

    @property
    def _needed(self) -> str:
        """What a unit must tell apart."""
        return f"{2 * self.settings.references} images of the pool"


def make_unit_maker(sources: Sources, assets: Path, cache: Path, progress: Progress) -> UnitMaker:
    """Plan the trials of a study about units: two images to choose from, or references to name."""
    maker = NameMaker if sources.config.task.of_units == "names" else UnitMaker
    return maker(sources, assets, cache, progress)
