"""What the Units view asks the pool for: images synthesised for a unit, and the top images of a set."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from functools import cached_property

import torch

from core.attribution.cost import Cost
from core.classifier import Classifier
from core.types import Progress
from core.units.display import black_and_white
from core.units.exemplars import PROBES
from core.units.maximise import MaximisedImages
from core.units.unit import Unit
from dashboard.explore.heatmap_jobs import estimate_seconds
from dashboard.shared.jobs import Job, pool
from dashboard.shared.keys import digest, tensor_digest
from data.types import ImageSet
from study.inquiry.exemplars import COUNT, Exemplars, exemplars, of_set
from study.inquiry.units import VisualisationSettings


@dataclass(frozen=True)
class MaximiseRequest:
    """A request for images synthesised for a unit."""

    classifier: Classifier
    unit: Unit
    settings: VisualisationSettings

    @cached_property
    def key(self) -> str:
        """Return the SHA-256 of everything the result depends on."""
        return digest("made", *_of(self.classifier, self.unit), json.dumps(asdict(self.settings), sort_keys=True))

    def compute(self, progress: Progress) -> MaximisedImages:
        """Make them."""
        return self.settings.make(self.classifier, self.unit, progress)

    def ask(self) -> Job:
        """The job that makes them, or has made them."""
        return pool().ask(self.key, self.compute, self.seconds or 0.0)

    @property
    def seconds(self) -> float | None:
        """About how long it takes."""
        return estimate_seconds(self.key, self.classifier, Cost(gradients=self.settings.starts * self.settings.steps))


@dataclass(frozen=True)
class ExemplarsRequest:
    """The pictures of a set that drive a unit most, to be found."""

    classifier: Classifier
    unit: Unit
    images: ImageSet = field(compare=False)

    @cached_property
    def key(self) -> str:
        """Return the SHA-256 of everything the result depends on."""
        return digest("found", *_of(self.classifier, self.unit), self.images.digest, str(COUNT))

    def compute(self, progress: Progress) -> Exemplars:
        """Find them."""
        return exemplars(self.classifier, self.unit, of_set(self.images), progress=progress)

    def ask(self) -> Job:
        """The job that finds them, or has found them."""
        return pool().ask(self.key, self.compute, self.seconds or 0.0)

    @property
    def seconds(self) -> float | None:
        """About how long it takes, opening the pictures aside."""
        return estimate_seconds(self.key, self.classifier, Cost(len(self.images), COUNT * (PROBES + 1)))


def _of(classifier: Classifier, unit: Unit) -> tuple[str, ...]:
    """The fingerprint covers the network alone: black and white gone through the transforms stand for these."""
    ends = torch.stack(black_and_white(classifier))
    return classifier.fingerprint, tensor_digest(ends), json.dumps(asdict(unit), sort_keys=True)
