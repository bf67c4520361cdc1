"""The background tasks of the Teaching page: the teaching sets of a trial, and its heatmap."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pandas as pd

from core.drawing.views import View, view
from core.types import Explanation, Progress
from dashboard.shared.imagegrid import make_thumbnail
from dashboard.shared.keys import digest
from dashboard.shared.tasks import Task
from study.building.averaged import AveragedAccuracy
from study.building.lessons import Lesson, lesson
from study.building.reopening import ReopenedStudy, reopen
from study.bundle import Bundle, Trial
from study.plan.config import Saliency
from study.plan.teaching import Teaching
from study.workspace.provenance import code_digest
from study.workspace.workspace import home

THUMBNAIL = 112
"""Side of an example's image, px."""
_lock = threading.Lock()
_last: list[tuple[str, ReopenedStudy]] = []


@dataclass(frozen=True)
class LessonResult:
    """The teaching sets of a trial, with the images of their examples by id, and the target's image.

    ``settings`` are those of the study, ``prior`` says how accurate the learner's is.
    """

    lesson: Lesson
    thumbnails: dict[str, bytes]
    target: bytes
    settings: Teaching
    prior: AveragedAccuracy | None

    def belief_table(self) -> pd.DataFrame:
        """Return policy, examples (their number), probability, log_odds, sd, added: the learner after each example."""
        rows = [
            (policy, count, belief.probability, belief.mean, belief.sd, belief.examples[-1] if belief.examples else "")
            for policy, beliefs in self.lesson.beliefs.items()
            for count, belief in enumerate(beliefs)
        ]
        return pd.DataFrame(rows, columns=["policy", "examples", "probability", "log_odds", "sd", "added"])

    def set_table(self) -> pd.DataFrame:
        """Return policy, p_learner, p_prior, gain, rank, scored, and the four examples of each policy's set."""
        rows = []
        for policy, chosen in self.lesson.sets.items():
            examples = {f"example_{k}": self.lesson.ids[i] for k, i in enumerate(chosen.indices, 1)}
            facts = {name: getattr(chosen, name) for name in ("p_learner", "p_prior", "gain", "rank", "scored")}
            rows.append({"policy": policy, **facts, **examples})
        return pd.DataFrame(rows)


@dataclass(frozen=True)
class HeatmapResult:
    """The heatmap of a trial's target image by the study's settings, and the image as the network sees it."""

    seen: View
    explanation: Explanation
    settings: Saliency


def make_lesson_task(bundle: Bundle, trial: Trial) -> Task:
    """Return the task that scores the teaching sets of a trial."""

    def work(progress: Progress) -> LessonResult:
        again = _reopen_study(bundle, progress)
        progress(0, 1, "scoring teaching sets")
        steps = lesson(again.planner, again.candidate(trial))
        pool = again.sources.sets["pool"]
        places = {name: i for i, name in enumerate(pool.ids)}
        shown = {steps.ids[i] for chosen in steps.sets.values() for i in chosen.indices}
        thumbnails = {name: make_thumbnail(pool.open(places[name]), THUMBNAIL) for name in sorted(shown)}
        target = make_thumbnail(again.open_image(trial), THUMBNAIL)
        return LessonResult(steps, thumbnails, target, again.sources.config.teaching, again.prior_accuracy)

    return Task(_key("lesson", bundle, trial), work, what="Opening the study and its learner")


def make_heatmap_task(bundle: Bundle, trial: Trial) -> Task:
    """Return the task that computes the heatmap of a trial's target image, with its standard error."""

    def work(progress: Progress) -> HeatmapResult:
        again = _reopen_study(bundle, progress)
        explanation = again.target_map(trial, progress)
        seen = view(again.sources.classifier, again.open_image(trial))
        return HeatmapResult(seen, explanation, again.sources.config.saliency)

    return Task(_key("map", bundle, trial), work, what="Opening the study and its network")


def _key(what: str, bundle: Bundle, trial: Trial) -> str:
    return digest(what, bundle.study_hash, str(bundle.folder), trial.id, code_digest())


def _reopen_study(bundle: Bundle, progress: Progress) -> ReopenedStudy:
    """Reopen the study; the last one stays open, because trials are viewed one after another."""
    key = str(bundle.folder)
    with _lock:
        if not _last or _last[0][0] != key:
            _last[:] = [(key, reopen(bundle, home() / "cache", progress))]
        return _last[0][1]
