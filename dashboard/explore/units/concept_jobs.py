"""The background tasks of the concepts of a class: the effects of changing images, and TCAV of the layers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from core.attribution.cost import Cost
from core.concepts.effect import ConceptEffect
from core.concepts.tcav import Tcav, tcav
from core.network.classifier import Classifier
from core.types import Progress
from dashboard.explore.heatmap_jobs import estimate_seconds
from dashboard.shared.keys import digest
from dashboard.shared.tasks import Task
from data.types import ImageSet
from inquiry.concepts.concepts import CHANCE, LEAST_CHANCE
from inquiry.concepts.conceptsets import OTHERS, draw_inputs, parse_concepts
from inquiry.concepts.interventions import against_others, draw_rows, predict_under_intervention
from study.network.sources import class_of_labels

CHANGED = 64
"""Images drawn under every value of a factor: about ten seconds for the scenes."""
MOST_IMAGES, RUNS = 30, 10
"""Images of a concept at most, and vectors, as in the command `concepts`."""


def list_concepts(images: ImageSet) -> list[str]:
    """List everything that can be changed in the images of a set, as the command `concepts` names it."""
    return [f"{name}={value}" for name, factor in images.factors.items() for value in factor.values]


@dataclass(frozen=True)
class InterventionEffects:
    """The effect of each concept on every class, by intervention on ``count`` images."""

    effects: dict[str, ConceptEffect]
    count: int


def make_intervention_task(classifier: Classifier, images: ImageSet) -> Task:
    """Return the task that redraws images of a set under every value of every factor, and classifies them."""
    count = len(list_concepts(images))

    def compute(progress: Progress) -> InterventionEffects:
        rows = draw_rows(len(images), 0, CHANGED)
        effects: dict[str, ConceptEffect] = {}
        for name, factor in images.factors.items():
            under: dict[str, np.ndarray] = {}
            for value in factor.values:
                progress(len(effects) + len(under), count, f"changing the {name}")
                under[value] = predict_under_intervention(classifier, images, rows, name, value)
            effects |= {f"{name}={value}": against_others(under, value) for value in under}
        return InterventionEffects(effects, len(rows))

    key = digest("intervention", classifier.fingerprint, images.digest, str(CHANGED))
    return Task(key, compute, lambda: estimate_seconds(classifier, Cost(CHANGED * count)))


def make_tcav_task(
    classifier: Classifier, images: ImageSet, target: int, concept: str, layers: tuple[str, ...]
) -> Task:
    """Return the task that tests whether a concept pushes a class in some layers, as the command `concepts` does."""

    def compute(progress: Progress) -> tuple[Tcav, ...]:
        (parsed,) = parse_concepts(images, [concept], None)
        labels = class_of_labels(images, classifier)
        count = min(MOST_IMAGES, int((labels != target).sum()) // (1 + OTHERS))
        seen = draw_inputs(classifier, parsed, images, labels, target, count, 0)
        return tcav(
            *(classifier, list(layers), seen.concept, seen.others, seen.target, target),
            runs=RUNS,
            concepts=max(LEAST_CHANCE, CHANCE * len(layers) - 1),
            generator=torch.Generator().manual_seed(0),
            progress=progress,
        )

    settings = f"{target}|{concept}|{'|'.join(layers)}|{MOST_IMAGES}|{RUNS}"
    return Task(
        digest("tcav", classifier.fingerprint, images.digest, settings),
        compute,
        lambda: estimate_seconds(classifier, Cost(gradients=len(layers) * (3 + OTHERS) * MOST_IMAGES)),
    )
