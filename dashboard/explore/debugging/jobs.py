"""What the Debugging view asks the pool for: a set with what the AI says of it, its doubts, calibration, rules."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

from core.attribution.cost import Cost
from core.classifier import Classifier
from core.types import Progress
from dashboard.explore.heatmap_jobs import estimate_seconds, get_pace
from dashboard.explore.uncertainty.jobs import PASSES
from dashboard.shared import cache
from dashboard.shared.jobs import Job, pool
from dashboard.shared.keys import digest
from data.types import ImageSet
from study.inquiry.assertions import COLUMNS, AssertionResults, assertions, load_judged_set
from study.inquiry.assertions import AssertionQuery as Rules
from study.inquiry.calibration import CalibrationResults, assess_calibration
from study.inquiry.debugging import DebuggingResults, debug_classifier
from study.inquiry.exemplars import of_set
from study.inquiry.rules import LIMIT_S, RuleProcess
from study.inquiry.uncertainty import UncertaintyQuery, uncertainty
from study.network.sources import open_set
from study.workspace.workspace import home


def start_debugging_job(model: str, name: str) -> Job:
    """Return the job that opens an image set, asks a classifier about it and looks for label errors and outliers."""
    asked, folder, source = cache.load_classifier(model), home(), cache.find_image_source(name)

    def work(progress: Progress) -> DebuggingResults:
        return debug_classifier(asked, open_set(*source), folder / "cache", progress)

    return pool().ask(digest("debugged", asked.fingerprint, str(folder), name, str(cache.SCENE_COUNT)), work)


@dataclass(frozen=True)
class NoiseRequest:
    """A whole set asked `PASSES` times more by a registered sampler; what comes of it is a table, one row per image."""

    classifier: Classifier
    sampler: str
    images: ImageSet = field(compare=False)

    @cached_property
    def key(self) -> str:
        """Return the SHA-256 of everything the result depends on."""
        return digest("set doubt", self.classifier.fingerprint, f"{self.sampler}|{PASSES}", self.images.digest)

    def compute(self, progress: Progress) -> pd.DataFrame:
        """Ask; blocks that are done wait in the cache for a run that was stopped."""
        asked = UncertaintyQuery(self.classifier.name, sampler=self.sampler, passes=PASSES)
        parts = home() / "cache" / "doubts"
        return uncertainty(self.classifier, asked, of_set(self.images), None, parts, progress).table

    def ask(self) -> Job:
        """The job that asks, or has asked."""
        return pool().ask(self.key, self.compute, self.seconds or 0.0)

    @property
    def seconds(self) -> float | None:
        """About how long it takes at most: what comes before the noise is computed once."""
        speed = get_pace(self.classifier)
        if pool().find(self.key):
            return 0.0
        return None if speed is None else 2 * PASSES * speed.forward_s * len(self.images)


@dataclass(frozen=True)
class CalibrationRequest:
    """Whether the confidence of the answers to a set that is open can be believed, where labels are known."""

    classifier: Classifier
    images: ImageSet = field(compare=False)

    @cached_property
    def key(self) -> str:
        """SHA-256 over everything the measures depend on."""
        return digest("calibration", self.classifier.fingerprint, self.images.digest)

    def compute(self, progress: Progress) -> CalibrationResults:
        """Measure; the answers are in the cache since the set was opened."""
        return assess_calibration(self.classifier, self.images, home() / "cache", progress)

    def ask(self) -> Job:
        """The job that measures, or has measured."""
        return pool().ask(self.key, self.compute, self.seconds)

    @property
    def seconds(self) -> float:
        """Nothing is classified again."""
        return 0.0


@dataclass(frozen=True)
class AssertionsRequest:
    """A set run through the assertions of a file; ``content`` are its bytes, so that a changed file is run again."""

    classifier: Classifier
    file: Path
    content: bytes
    images: ImageSet = field(compare=False)

    @cached_property
    def key(self) -> str:
        """SHA-256 over everything that what is found depends on."""
        parts = self.classifier.fingerprint, self.images.digest, str(self.file)
        return digest("assertions", *parts, str(LIMIT_S), self.content)

    def compute(self, progress: Progress) -> AssertionResults:
        """Execute the file and run it; blocks that are done wait in the cache for a run that was stopped."""
        asked = Rules(self.file, self.classifier.name, limit=LIMIT_S)
        parts = home() / "cache" / "assertions"
        with closing(RuleProcess(self.file, COLUMNS)) as rules:
            return assertions(self.classifier, rules, asked, load_judged_set(self.images), parts, progress)

    def ask(self) -> Job:
        """The job that runs it, or has run it."""
        return pool().ask(self.key, self.compute, self.seconds or 0.0)

    @property
    def seconds(self) -> float | None:
        """About how long it takes at least: how often rules ask is theirs, twice a picture is little."""
        return estimate_seconds(self.key, self.classifier, Cost(2 * len(self.images)))
