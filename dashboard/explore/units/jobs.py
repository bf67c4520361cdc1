"""The background tasks of a unit: images synthesised for it, and the top images of a set."""

from __future__ import annotations

import json
from dataclasses import asdict

import torch

from core.attribution.cost import Cost
from core.network.classifier import Classifier
from core.units.display import black_and_white
from core.units.exemplars import PROBES
from core.units.maco import Views
from core.units.unit import Unit
from dashboard.explore.heatmap_jobs import estimate_seconds
from dashboard.shared.keys import digest, tensor_digest
from dashboard.shared.tasks import Task
from data.types import ImageSet
from inquiry.units.exemplars import COUNT, exemplars, of_set
from inquiry.units.sampled_units import HOW, SampledQuery, sample
from inquiry.units.units import VisualisationSettings


def make_synthesis_task(
    classifier: Classifier, unit: Unit, settings: VisualisationSettings, images: ImageSet | None = None
) -> Task:
    """Return the task that synthesises images for a unit; only MACO depends on ``images``."""
    source = images if settings.reads_images else None
    views = Views.count if settings.reads_images else 1
    return Task(
        digest(
            "synthesised",
            *_of(classifier, unit),
            json.dumps(asdict(settings), sort_keys=True),
            source.digest if source else "",
        ),
        lambda progress: settings.make(classifier, unit, progress, of_set(source) if source else None),
        lambda: estimate_seconds(classifier, Cost(gradients=settings.starts * settings.steps * views)),
    )


def make_sampling_task(classifier: Classifier, unit: Unit, query: SampledQuery) -> Task:
    """Return the task that draws images with a unit clamped, and maximises images for it; its time is not known."""
    return Task(
        digest(HOW, *_of(classifier, unit), json.dumps(asdict(query), sort_keys=True)),
        lambda progress: sample(classifier, query, progress),
    )


def make_exemplars_task(classifier: Classifier, unit: Unit, images: ImageSet) -> Task:
    """Return the task that finds the images of a set that drive a unit most; the estimate leaves out opening them."""
    return Task(
        digest("exemplars", *_of(classifier, unit), images.digest, str(COUNT)),
        lambda progress: exemplars(classifier, unit, of_set(images), progress=progress),
        lambda: estimate_seconds(classifier, Cost(len(images), COUNT * (PROBES + 1))),
    )


def _of(classifier: Classifier, unit: Unit) -> tuple[str, ...]:
    """Return what a unit depends on: black and white images represent the transforms."""
    ends = torch.stack(black_and_white(classifier))
    return classifier.fingerprint, tensor_digest(ends), json.dumps(asdict(unit), sort_keys=True)
