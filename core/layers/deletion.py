"""The effect on each class of deleting a unit of a layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from core.attribution.maps.erasure import Units, compute_erased_logits
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import chunk_size
from core.types import Progress, silent

MOST_NAMED = 5
"""Classes that an error names."""


@dataclass(frozen=True)
class Deletion:
    """The effect of deleting each unit on each class.

    Attributes
    ----------
    classes
        (M,) int64: the classes that images were given of.
    drop, error
        (K, M) float64: the mean fall of a class's probability on its own images when unit k is set to 0 everywhere,
        and its standard error over the images; negative where the unit spoke against the class.
    accuracy
        (K, M) float64: the share of the class's images still called by its name.
    whole
        (M,) float64: that share with every unit in place.
    """

    classes: Tensor
    drop: Tensor
    error: Tensor
    accuracy: Tensor
    whole: Tensor


def delete_units(
    classifier: Classifier, inputs: Tensor, labels: Tensor, layer: str, *, progress: Progress = silent
) -> Deletion:
    """Delete every unit (channel) of a layer in turn; inputs (N, C, H, W) with class indices (N,), each class twice.

    Representation erasure (Li et al. 2016, arXiv:1612.08220) by class, in probabilities as in Bau et al. 2020
    (arXiv:2009.05041), section 2.3. Costs K forward passes an image.

    Raises
    ------
    ForetellError
        No such layer (with the nearest), or fewer than two images of a class.
    """
    refuse_single(labels, classifier.categories)
    return by_class(predict_without_units(classifier, inputs, labels, layer, progress=progress), labels)


def refuse_single(labels: Tensor, categories: Sequence[str]) -> None:
    """Raise an error for classes of one image, whose effects would have no standard error."""
    classes, counts = torch.unique(labels, return_counts=True)
    single = classes[counts < 2].tolist()
    if single:
        names = ", ".join(categories[k] for k in single[:MOST_NAMED])
        names += f" and {len(single) - MOST_NAMED:,} other classes" if len(single) > MOST_NAMED else ""
        raise ForetellError(
            "Deletion reports each effect with its error, which needs two or more images of each class, and there is "
            f"only 1 of {names}. Raise the maximum number of images (in a command, --setting size=NUMBER), or choose "
            "another set where this one has no more."
        )


class UnitDeletions(NamedTuple):
    """To N images, of each of K units: the fall of the own class's probability, and whether it is still called so
    (N, K); and whether it is with all units (N,). All float64."""

    drop: Tensor
    right: Tensor
    whole: Tensor


def predict_without_units(
    classifier: Classifier,
    inputs: Tensor,
    labels: Tensor,
    layer: str,
    *,
    channels: Tensor | None = None,
    progress: Progress = silent,
) -> UnitDeletions:
    """Predict each image without each unit: `delete_units`, image by image.

    ``channels`` (K,) are the units to delete; all of them by default.
    """
    units = Units.of(classifier, layer, "channel")
    chosen = torch.arange(units.count) if channels is None else channels
    whole = classifier.probabilities(inputs).double()
    changes = torch.empty(2, len(inputs), len(chosen), dtype=torch.float64)
    for i, (x, label) in enumerate(zip(inputs, labels.tolist(), strict=True)):
        for part in torch.split(torch.arange(len(chosen)), chunk_size(x, classifier.device)):
            without = compute_erased_logits(classifier, x, units, chosen[part]).double().softmax(1)
            changes[0, i, part] = whole[i, label] - without[:, label]
            changes[1, i, part] = (without.argmax(1) == label).double()
        progress(i + 1, len(inputs), f"deleting units of {layer}")
    return UnitDeletions(changes[0], changes[1], (whole.argmax(1) == labels).double())


def by_class(predictions: UnitDeletions, labels: Tensor) -> Deletion:
    """Return means over the images of each class."""
    classes = torch.unique(labels)
    drops, rights, wholes = ([part[labels == k] for k in classes] for part in predictions)
    return Deletion(
        classes,
        torch.stack([drop.mean(0) for drop in drops], 1),
        torch.stack([drop.std(0) / len(drop) ** 0.5 for drop in drops], 1),
        torch.stack([right.mean(0) for right in rights], 1),
        torch.stack([whole.mean() for whole in wholes]),
    )
