"""One trial of a study in every condition, made before the study is built."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from core.errors import ForetellError
from core.network.device import one_thread
from core.types import Progress, silent
from study.building.attributes import AttributeMaker
from study.building.categories import CategoryShortage, Supply
from study.building.check import PREVIEWS
from study.building.names import make_unit_maker
from study.building.plan import Planner, predict_sets, refuse_uncovered
from study.building.stimuli import StimulusStudio
from study.bundle import Trial
from study.network.sources import Sources, open_sources
from study.plan.config import StudyConfig


@dataclass(frozen=True)
class TrialPreview:
    """A trial as the study file would make it now; ``assets`` is the folder of its images."""

    trial: Trial
    config: StudyConfig
    assets: Path

    def asset(self, sha256: str) -> Path:
        """Return the file of an image."""
        return self.assets / f"{sha256}.webp"


def preview_trial(path: Path, home: Path, progress: Progress = silent, *, number: int = 0) -> TrialPreview:
    """Make one trial of a study file with the images of all its conditions; nothing is frozen.

    It is a trial of a category of medium accuracy, by the same steps as in a build; the build may show this category
    with other images. ``number`` chooses another category, unit or grid.

    Raises
    ------
    ForetellError
        The study cannot be built: the first reason.
    """
    sources = open_sources(path)
    return _preview(sources, home / "cache", progress, number)


@one_thread()
def _preview(sources: Sources, cache: Path, progress: Progress, number: int) -> TrialPreview:
    if sources.config.task.of_attributes:
        grids = AttributeMaker(sources, cache / PREVIEWS, cache, progress)
        trial = grids.make(grids.trials[number % len(grids.trials)], progress)
        return TrialPreview(trial, sources.config, cache / PREVIEWS)
    if sources.config.task.of_units:
        maker = make_unit_maker(sources, cache / PREVIEWS, cache, progress)
        trial = maker.make(maker.trials[number % len(maker.trials)], progress)
        return TrialPreview(trial, sources.config, cache / PREVIEWS)
    material = predict_sets(sources, cache, progress)
    supply = Supply(material, 1)
    if not len(supply.complete):
        raise CategoryShortage(supply, 1)
    category = int(supply.complete[(len(supply.complete) // 2 + number) % len(supply.complete)])
    name = sources.classifier.categories[category]
    trials = sources.config.trials.model_copy(update={"categories": (name,), "per_type": 1, "practice": 0})
    sources = replace(sources, config=sources.config.model_copy(update={"trials": trials}))
    plan = Planner(sources, material, cache).plan(progress)
    if not plan.trials:
        raise ForetellError(plan.refusal)
    plan = replace(plan, trials=plan.trials[:1], practice=())
    refuse_uncovered(sources, plan)
    studio = StimulusStudio(sources, material, cache / PREVIEWS, cache)
    return TrialPreview(studio.make(plan.trials[0], progress), sources.config, studio.assets)
