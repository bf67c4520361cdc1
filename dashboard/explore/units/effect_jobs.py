"""The background task of a channel's effects: the concepts it responds to, and what classes lose without it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from core.attribution.cost import Cost
from core.layers.deletion import Deletion, by_class, predict_without_units
from core.layers.dissection import Dissection, dissect
from core.layers.layers import maps_of
from core.network.classifier import Classifier
from core.network.decoding import read_batches
from core.types import Progress
from core.units.unit import Unit
from dashboard.explore.heatmap_jobs import estimate_seconds
from dashboard.shared.keys import digest
from dashboard.shared.tasks import Task
from data.types import ImageSet
from inquiry.layers.units.dissection import compute_lit_share, concept_masks
from study.network.sources import class_of_labels

MOST = 320
"""Images at most, the first of the set: with a large network, more would take minutes for one unit."""


@dataclass(frozen=True)
class ChannelEffects:
    """Of one channel: the classes' losses without it, and its agreement with concepts where the set knows them."""

    deletion: Deletion
    dissection: Dissection | None
    count: int


def make_effects_task(classifier: Classifier, unit: Unit, images: ImageSet) -> Task:
    """Return the task that deletes a channel, and compares it with masks of concepts, on the images of a set."""
    count = min(MOST, len(images))

    def compute(progress: Progress) -> ChannelEffects:
        inputs = torch.cat(list(read_batches(classifier, images.open, 0, count)))
        classes = torch.from_numpy(class_of_labels(images, classifier)[:count])
        counted = torch.bincount(classes[classes >= 0], minlength=len(classifier.categories))
        used = (classes >= 0) & (counted[classes.clamp(min=0)] > 1)  # a single image has no error
        predictions = predict_without_units(
            classifier,
            inputs[used],
            classes[used],
            unit.layer,
            channels=torch.tensor([unit.channel]),
            progress=progress,
        )
        dissection = _dissect(classifier, unit, images, inputs)
        return ChannelEffects(by_class(predictions, classes[used]), dissection, int(used.sum()))

    key = digest("effects", classifier.fingerprint, f"{unit.layer}|{unit.channel}|{MOST}", images.digest)
    return Task(key, compute, lambda: estimate_seconds(classifier, Cost(3 * count)))


def _dissect(classifier: Classifier, unit: Unit, images: ImageSet, inputs: torch.Tensor) -> Dissection | None:
    if images.mask is None:
        return None
    masks, names = concept_masks(images)
    activations = maps_of(classifier, inputs, unit.layer)[:, unit.channel, None]
    return dissect(activations, masks[: len(activations)], names, top=compute_lit_share(activations))
