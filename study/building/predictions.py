"""Trials about predictions of the AI: what a build plans and makes, and what it says of the network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.errors import ForetellError
from core.teaching.kfac import KroneckerPrior
from core.types import Progress
from study.building.averaged import AVERAGED, compare
from study.building.check import find_shortage
from study.building.plan import PlannedTrial, make_planner, refuse_uncovered
from study.building.stimuli import StimulusStudio
from study.bundle import Trial
from study.network.sources import Sources


class PredictionMaker:
    """Plans the trials of a study, and explains and draws each of them."""

    def __init__(self, sources: Sources, assets: Path, cache: Path, progress: Progress) -> None:
        self._sources, self._planner = sources, make_planner(sources, cache, progress)
        self._material = self._planner.material
        plan = self._planner.plan(progress)
        if shortage := find_shortage(plan, sources.config):
            raise ForetellError(shortage)
        refuse_uncovered(sources, plan)
        self.trials, self.practice, self.omissions = plan.trials, plan.practice, plan.dropped
        self.repeats = plan.repeats
        self._studio = StimulusStudio(sources, self._material, assets, cache)

    def make(self, planned: PlannedTrial, progress: Progress) -> Trial:
        """Explain and draw one trial; its assets are on disk when it returns."""
        return self._studio.make(planned, progress)

    def describe(self) -> dict[str, Any]:
        """Describe the network's accuracy and the learner's prior, for the manifest."""
        roles = ("standard", "adversarial")
        accuracy = {role: float(f"{self._material.of(role).correct.mean():.6g}") for role in roles}
        return {"accuracy": accuracy, "prior": _describe_prior(self._sources, self._planner.prior)}

    def compare(self) -> dict[str, str]:
        """Say how accurate the learner's prior is as a classifier, which is no part of the study's identity."""
        pool = self._material.pool
        averaged = compare(self._planner.prior, pool.features, pool.truth, self._planner.seed)
        return {AVERAGED: averaged.text} if averaged else {}


def _describe_prior(sources: Sources, prior: KroneckerPrior) -> dict[str, Any]:
    """Describe the learner's prior, with the damping it has; ``file`` is None where it was estimated from the pool."""
    features, classes = (float(f"{condition:.2g}") for condition in prior.conditions)
    stored, file = sources.prior, None
    if stored is not None:
        file = {"digest": stored.digest} | {key: stored.provenance[key] for key in ("set", "tau", "damping")}
    damping = float(f"{prior.damping:.6g}")
    return {
        "images": prior.images,
        "damping": damping,
        "conditions": {"features": features, "classes": classes},
        "file": file,
    }
