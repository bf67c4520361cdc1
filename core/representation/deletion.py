"""What a class loses when a unit of a layer is deleted."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from core.attribution.erasure import Units, erased_logits
from core.classifier import Classifier
from core.device import chunk_size
from core.errors import ForetellError
from core.types import Progress, silent


@dataclass(frozen=True)
class Deletion:
    """What deleting each unit costs each class.

    Attributes
    ----------
    classes
        (M,) int64: the classes that pictures were given of.
    drop, error
        (K, M) float64: the mean fall of a class's probability on its own pictures when unit k is set to 0 everywhere,
        and its standard error over the pictures; negative where the unit spoke against the class.
    accuracy
        (K, M) float64: the share of the class's pictures still called by its name.
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
    (arXiv:2009.05041), section 2.3. Costs K forward passes a picture.

    Raises
    ------
    ForetellError
        No such layer (with the nearest), or fewer than two pictures of a class.
    """
    classes, own = torch.unique(labels, return_inverse=True)
    if int(own.bincount().min()) < 2:
        raise ForetellError("Deletion tells each effect with its error: give two or more pictures of each class.")
    units = Units.of(classifier, layer, "channel")
    whole = classifier.probabilities(inputs).double()
    drops = torch.empty(units.count, len(inputs), dtype=torch.float64)
    right = torch.empty(units.count, len(inputs), dtype=torch.float64)
    for i, (x, label) in enumerate(zip(inputs, labels.tolist(), strict=True)):
        for part in torch.split(torch.arange(units.count), chunk_size(x)):
            without = erased_logits(classifier, x, units, part).double().softmax(1)
            drops[part, i] = whole[i, label] - without[:, label]
            right[part, i] = (without.argmax(1) == label).double()
        progress(i + 1, len(inputs), f"deleting units of {layer}")
    groups = [own == k for k in range(len(classes))]
    return Deletion(
        classes,
        torch.stack([drops[:, group].mean(1) for group in groups], 1),
        torch.stack([drops[:, group].std(1) / group.sum() ** 0.5 for group in groups], 1),
        torch.stack([right[:, group].mean(1) for group in groups], 1),
        torch.stack([(whole.argmax(1) == labels)[group].double().mean() for group in groups]),
    )
