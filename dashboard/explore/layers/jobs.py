"""The background task of the view of layers: a question of the command `layers`, for some images of a set."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd
from PIL import Image

from core.network.classifier import Classifier
from core.parameters import list_parameters
from core.types import Progress
from dashboard.explore.heatmap_jobs import estimate_seconds
from dashboard.shared.keys import digest
from dashboard.shared.tasks import Task
from data.types import ImageSet
from inquiry.concepts.interventions import draw_rows
from inquiry.layers import QUESTIONS
from inquiry.layers.inspection import LayerInspection, LayerQuery
from inquiry.layers.question_files import ask_question, draw_result
from inquiry.layers.record import record_of
from study.workspace.workspace import home


@dataclass(frozen=True)
class LayerResult:
    """A question's table, and how it was computed."""

    table: pd.DataFrame
    facts: dict[str, Any]
    drawings: Mapping[str, Image.Image] = field(default_factory=dict)


@dataclass(frozen=True)
class LayerRequest:
    """A question of the command `layers`, about at most ``count`` images of a set, drawn with its seed."""

    query: LayerQuery
    classifier: Classifier
    compared: Classifier
    images: ImageSet = field(compare=False)
    count: int

    @cached_property
    def key(self) -> str:
        """Return the SHA-256 of everything the result depends on."""
        networks = (self.classifier.fingerprint, self.compared.fingerprint)
        return digest(
            "layers", *networks, self.images.digest, str(self.count), json.dumps(asdict(self.query), sort_keys=True)
        )

    def compute(self, progress: Progress) -> LayerResult:
        """Compute the table; finished blocks stay in the cache for a run that was stopped."""
        images = self.images.only(draw_rows(len(self.images), self.query.seed, self.count))
        parts = home() / "cache" / "inspections"
        inspected = LayerInspection(self.classifier, images, self.query, self.compared, parts)
        return LayerResult(ask_question(inspected, progress), inspected.facts, draw_result(inspected))

    @property
    def task(self) -> Task:
        """Return the task that computes it."""
        return Task(self.key, self.compute, self.estimate)

    def estimate(self) -> float | None:
        """Estimate the seconds at most, None where they are unknown; what is computed from the passes is left out."""
        rule = record_of(self.query.question).cost
        defaults = {parameter.name: parameter.default for parameter in list_parameters(QUESTIONS[self.query.question])}
        work = rule(self, defaults | dict(self.query.parameters)) if rule else None
        if work is None:
            return None
        passes = estimate_seconds(self.classifier, work) if work.forwards or work.gradients else 0.0
        return None if passes is None else passes + work.seconds

    @property
    def image_count(self) -> int:
        """Return the number of images used."""
        return min(self.count, len(self.images))
