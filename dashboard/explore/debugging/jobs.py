"""The background tasks of the Debugging view: a set's predictions, their uncertainty, calibration, rules."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pandas as pd

from core.attribution.cost import Cost
from core.network.classifier import Classifier
from core.types import Progress
from dashboard.explore.heatmap_jobs import estimate_seconds
from dashboard.explore.uncertainty.jobs import PASSES
from dashboard.shared import cache
from dashboard.shared.jobs import Job, pool
from dashboard.shared.keys import digest
from dashboard.shared.tasks import Task
from data.types import ImageSet
from inquiry.assertions.assertions import COLUMNS, AssertionQuery, AssertionResults, assertions, load_judged_set
from inquiry.assertions.rules import LIMIT_S, RuleProcess
from inquiry.debugging.calibration import assess_calibration
from inquiry.debugging.debugging import DebuggingResults, debug_classifier
from inquiry.debugging.uncertainty import UncertaintyQuery, uncertainty
from inquiry.units.exemplars import of_set
from study.network.sources import open_set
from study.workspace.workspace import home


def start_debugging_job(model: str, name: str) -> Job:
    """Return the job that opens and classifies an image set, and looks for label errors and outliers."""
    asked, folder, source = cache.load_classifier(model), home(), cache.find_image_source(name)

    def work(progress: Progress) -> DebuggingResults:
        return debug_classifier(asked, open_set(*source), folder / "cache", progress)

    return pool().ask(digest("debugged", asked.fingerprint, str(folder), name, str(cache.SCENE_COUNT)), work)


def make_noise_task(classifier: Classifier, sampler: str, images: ImageSet) -> Task:
    """Return the task that passes a set `PASSES` times through the network under noise: a table, one row per image."""

    def compute(progress: Progress) -> pd.DataFrame:
        asked = UncertaintyQuery(classifier.name, sampler=sampler, passes=PASSES)
        return uncertainty(classifier, asked, of_set(images), None, _parts("uncertainty"), progress).table

    key = digest("set uncertainty", classifier.fingerprint, f"{sampler}|{PASSES}", images.digest)
    return Task(key, compute, lambda: estimate_seconds(classifier, Cost(2 * PASSES * len(images))))


def make_calibration_task(classifier: Classifier, images: ImageSet) -> Task:
    """Return the task that measures calibration, from the cached predictions for a set that is open."""
    key = digest("calibration", classifier.fingerprint, images.digest)
    return Task(key, lambda progress: assess_calibration(classifier, images, home() / "cache", progress))


def make_assertions_task(classifier: Classifier, file: Path, content: bytes, images: ImageSet) -> Task:
    """Return the task that runs a set through the assertions of a file; changed ``content`` makes another task.

    The estimate is a lower bound of two passes per image: how many passes rules take is their own choice.
    """

    def compute(progress: Progress) -> AssertionResults:
        asked = AssertionQuery(file, classifier.name, limit=LIMIT_S)
        with closing(RuleProcess(file, COLUMNS)) as rules:
            return assertions(classifier, rules, asked, load_judged_set(images), _parts("assertions"), progress)

    key = digest("assertions", classifier.fingerprint, images.digest, str(file), str(LIMIT_S), content)
    return Task(key, compute, lambda: estimate_seconds(classifier, Cost(2 * len(images))))


def _parts(name: str) -> Path:
    """Return the folder where finished blocks stay for a run that was stopped."""
    return home() / "cache" / name
