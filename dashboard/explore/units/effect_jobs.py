"""What the Units view asks the pool for besides pictures: where a unit lights up, and what classes lose without it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import torch

from core.attribution.cost import Cost
from core.classifier import Classifier
from core.layers.deletion import Deletion, by_class, predict_without_units
from core.layers.dissection import Dissection, dissect
from core.layers.layers import maps_of
from core.types import Progress
from core.units.unit import Unit
from dashboard.explore.heatmap_jobs import estimate_seconds
from dashboard.shared.jobs import Job, pool
from dashboard.shared.keys import digest
from data.types import ImageSet
from study.inquiry.layer_questions import compute_lit_share, concept_masks
from study.network.reading import batches
from study.network.sources import class_of_labels

MOST = 320
"""Pictures at most, the first of the set: the networks of large sets would take minutes for one unit."""


@dataclass(frozen=True)
class ChannelEffects:
    """Of one channel: the classes' losses without it, and its agreement with concepts where the set knows them."""

    deletion: Deletion
    dissection: Dissection | None
    pictures: int


@dataclass(frozen=True)
class ChannelEffectsRequest:
    """A channel of a layer, and the set it is asked about."""

    classifier: Classifier
    unit: Unit
    images: ImageSet = field(compare=False)

    @cached_property
    def key(self) -> str:
        """Return the SHA-256 of everything the result depends on."""
        return digest(
            "effects", self.classifier.fingerprint, f"{self.unit.layer}|{self.unit.channel}|{MOST}", self.images.digest
        )

    def compute(self, progress: Progress) -> ChannelEffects:
        """Delete it, and compare it with the masks."""
        count = min(MOST, len(self.images))
        inputs = torch.cat(list(batches(self.classifier, self.images, 0, count)))
        classes = torch.from_numpy(class_of_labels(self.images, self.classifier)[:count])
        counted = torch.bincount(classes[classes >= 0], minlength=len(self.classifier.categories))
        shown = (classes >= 0) & (counted[classes.clamp(min=0)] > 1)  # of single pictures there is no error
        channel = torch.tensor([self.unit.channel])
        answers = predict_without_units(
            self.classifier, inputs[shown], classes[shown], self.unit.layer, channels=channel, progress=progress
        )
        return ChannelEffects(by_class(answers, classes[shown]), self._dissect(inputs), int(shown.sum()))

    def _dissect(self, inputs: torch.Tensor) -> Dissection | None:
        if self.images.mask is None:
            return None
        masks, names = concept_masks(self.images)
        maps = maps_of(self.classifier, inputs, self.unit.layer)[:, self.unit.channel, None]
        return dissect(maps, masks[: len(maps)], names, top=compute_lit_share(maps))

    def ask(self) -> Job:
        """The job that finds out, or has found out."""
        return pool().ask(self.key, self.compute, self.seconds or 0.0)

    @property
    def seconds(self) -> float | None:
        """About how long it takes, opening the pictures aside."""
        return estimate_seconds(self.key, self.classifier, Cost(3 * min(MOST, len(self.images))))
