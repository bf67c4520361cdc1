"""What the Units view asks the pool for of a class: what changing the pictures does to it, and TCAV of its layers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch

from core.attribution.cost import Cost
from core.classifier import Classifier
from core.concepts.effect import ConceptEffect
from core.concepts.tcav import Tcav, tcav
from core.types import Progress
from dashboard.explore.heatmap_jobs import estimate_seconds
from dashboard.shared.jobs import Job, pool
from dashboard.shared.keys import digest
from data.types import ImageSet
from study.inquiry.concepts import CHANCE, LEAST_CHANCE
from study.inquiry.conceptsets import OTHERS, material, parse_concepts
from study.inquiry.interventions import against_others, draw_rows, predict_under_intervention
from study.network.sources import class_of_labels

CHANGED = 64
"""Pictures drawn under every value of a factor: about ten seconds for the scenes."""
SHOWN, RUNS = 30, 10
"""Pictures of a concept at most, and vectors, as the verb has them."""


def list_concepts(images: ImageSet) -> list[str]:
    """All that can be changed in the pictures of a set, as the verb `concepts` takes it."""
    return [f"{name}={value}" for name, factor in images.factors.items() for value in factor.values]


@dataclass(frozen=True)
class InterventionEffects:
    """The effect of each concept on every class, by intervention on so many ``pictures``."""

    effects: dict[str, ConceptEffect]
    pictures: int


@dataclass(frozen=True)
class InterventionRequest:
    """A set whose pictures can be changed, to be asked about under every change; for all classes at once."""

    classifier: Classifier
    images: ImageSet = field(compare=False)

    @cached_property
    def key(self) -> str:
        """Return the SHA-256 of everything the result depends on."""
        return digest("reliance", self.classifier.fingerprint, self.images.digest, str(CHANGED))

    def compute(self, progress: Progress) -> InterventionEffects:
        """Draw the images under every value, and classify them."""
        rows, changes = draw_rows(len(self.images), 0, CHANGED), len(list_concepts(self.images))
        effects: dict[str, ConceptEffect] = {}
        for name, factor in self.images.factors.items():
            under: dict[str, np.ndarray] = {}
            for value in factor.values:
                progress(len(effects) + len(under), changes, f"changing the {name}")
                under[value] = predict_under_intervention(self.classifier, self.images, rows, name, value)
            effects |= {f"{name}={value}": against_others(under, value) for value in under}
        return InterventionEffects(effects, len(rows))

    def ask(self) -> Job:
        """The job that finds out, or has found out."""
        return pool().ask(self.key, self.compute, self.seconds or 0.0)

    @property
    def seconds(self) -> float | None:
        """About how long it takes, drawing the pictures aside."""
        return estimate_seconds(self.key, self.classifier, Cost(CHANGED * len(list_concepts(self.images))))


@dataclass(frozen=True)
class TcavRequest:
    """Whether a concept of `list_concepts` pushes a class in some layers, to be tested as the verb tests it."""

    classifier: Classifier
    images: ImageSet = field(compare=False)
    target: int
    concept: str
    layers: tuple[str, ...]

    @cached_property
    def key(self) -> str:
        """Return the SHA-256 of everything the result depends on."""
        asked_for = f"{self.target}|{self.concept}|{'|'.join(self.layers)}|{SHOWN}|{RUNS}"
        return digest("push", self.classifier.fingerprint, self.images.digest, asked_for)

    def compute(self, progress: Progress) -> tuple[Tcav, ...]:
        """Test it."""
        (concept,) = parse_concepts(self.images, [self.concept], None)
        labels = class_of_labels(self.images, self.classifier)
        count = min(SHOWN, int((labels != self.target).sum()) // (1 + OTHERS))
        seen = material(self.classifier, concept, self.images, labels, self.target, count, 0)
        return tcav(
            self.classifier,
            list(self.layers),
            seen.concept,
            seen.others,
            seen.target,
            self.target,
            runs=RUNS,
            concepts=self._chance,
            generator=torch.Generator().manual_seed(0),
            progress=progress,
        )

    @property
    def _chance(self) -> int:
        """Concepts that are none, for each layer."""
        return max(LEAST_CHANCE, CHANCE * len(self.layers) - 1)

    def ask(self) -> Job:
        """The job that tests it, or has tested it."""
        return pool().ask(self.key, self.compute, self.seconds or 0.0)

    @property
    def seconds(self) -> float | None:
        """About how long it takes, the vectors aside."""
        passes = len(self.layers) * (3 + OTHERS) * SHOWN
        return estimate_seconds(self.key, self.classifier, Cost(gradients=passes))
