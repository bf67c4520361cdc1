"""Images of a set that activate a unit most, its receptive field, and its projection to the pixels.

Zeiler & Fergus 2013 (arXiv:1311.2901), section 2.1 and figure 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from core.attribution.gradients.rectifiers import Rectifiers
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import chunk_size, in_chunks, stream
from core.network.gradients import differentiate
from core.network.interception import hides_calls
from core.types import Progress, silent
from core.units.unit import READING, Unit, find_layer_shape, outputs_of, response

PROBES = 8
"""Random images whose gradients together show a unit's field."""


@dataclass(frozen=True)
class TopActivations:
    """The K images that drive a feature map most, the strongest first.

    Attributes
    ----------
    unit
        The feature map.
    images
        (K,) int64: positions in the set. Each image counts once, with its strongest place.
    activations
        (K,) float32.
    places
        (K, 2) int64: row and column in the feature map.
    """

    unit: Unit
    images: Tensor
    activations: Tensor
    places: Tensor


def top_activations(
    classifier: Classifier, unit: Unit, blocks: Iterable[Tensor], *, count: int = 9, progress: Progress = silent
) -> TopActivations:
    """Find the ``count`` images of ``blocks`` (n, C, H, W) with the highest activation of a feature map.

    ``unit`` has no place: the places are what is found. Of equal activations the earlier image and place come first.
    """
    if count < 1:
        raise ForetellError(f"count={count}: ask for at least 1 image.")
    if len(find_layer_shape(classifier, unit)) == 1 or unit.row is not None:
        raise ForetellError("The search finds the strongest place: give a layer with places, without row and column.")
    values, places, done = [], [], 0
    for block in blocks:
        maps = in_chunks(lambda part: _maps(classifier, unit, part), block, chunk_size(block[0], classifier.device))
        values.append(maps.flatten(1).amax(1))
        places.append((maps.flatten(1) == values[-1][:, None]).int().argmax(1))
        width, done = maps.shape[2], done + len(block)
        progress(done, done, READING)
    if not done:
        raise ForetellError("There are no images to search: give at least one.")
    whole, where = torch.cat(values), torch.cat(places)
    best = whole.argsort(descending=True, stable=True)[:count]
    rows, columns = where[best] // width, where[best] % width
    return TopActivations(unit, best, whole[best], torch.stack([rows, columns], 1))


@torch.no_grad()
def _maps(classifier: Classifier, unit: Unit, inputs: Tensor) -> Tensor:
    with outputs_of(classifier, unit.layer) as (module, kept):
        module(inputs.to(classifier.device, copy=True))
    return kept[0][:, unit.channel].float().cpu()


def find_receptive_field(classifier: Classifier, unit: Unit) -> tuple[int, int, int, int]:
    """Find the part of the image that a unit at one place sees: top, left, bottom, right (px, the last two exclusive).

    The smallest rectangle around all pixels with a gradient to any channel at this place, for random images; so it
    holds for every network, and where an image's own ReLUs are closed, too. It is never too large; pixels that count
    only for rare images can be missed at its rim.
    """
    if unit.row is None:
        raise ForetellError("A field belongs to one place: give the unit's row and column.")
    find_layer_shape(classifier, unit)
    touched = torch.zeros(classifier.input_shape[1:], dtype=torch.bool)
    for probe in range(PROBES):
        draws = stream(0, probe)
        inputs = torch.randn(1, *classifier.input_shape, generator=draws).to(classifier.device).requires_grad_()
        with classifier.gradients(), torch.enable_grad(), outputs_of(classifier, unit.layer) as (module, kept):
            module(inputs.clone())
            place = kept[0][0, :, unit.row, unit.column]
            weights = torch.randn(len(place), generator=draws).to(place.device)
            (gradient,) = differentiate((weights * place).sum(), inputs)
        touched |= (gradient[0] != 0).any(0).cpu()
    rows, columns = (touched.any(axis).nonzero()[:, 0] for axis in (1, 0))
    if not len(rows):
        raise ForetellError(f"No gradient of layer {unit.layer!r} reaches the image. Choose another layer.")
    return int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1


def projection(classifier: Classifier, unit: Unit, image: Tensor) -> tuple[Tensor, tuple[str, ...]]:
    """Project what drives a unit in one image (C, H, W) to its pixels by a deconvnet; (C, H, W), and warnings.

    Zeiler & Fergus 2013, section 2.1: back through the transposed layers, the switches of the max pooling and ReLUs
    that pass only what is positive, beginning with 1 at the unit (there with its activation: the same up to scale). Of
    a linear unit it is the kernel.

    Raises
    ------
    ForetellError
        No such unit, or compiled parts of the network in which ReLUs cannot be changed.
    """
    find_layer_shape(classifier, unit)
    inputs = image.detach().to(classifier.device, torch.float32)[None].clone().requires_grad_()
    with classifier.exclusive() as module:
        if hides_calls(module):
            raise ForetellError(
                f"{classifier.name} has TorchScript or compiled parts, in which a deconvnet cannot change the ReLUs. "
                "Load the network uncompiled."
            )
        with classifier.gradients(), torch.enable_grad(), Rectifiers("deconvnet") as rectifiers:
            (gradient,) = differentiate(response(classifier, unit, inputs).sum(), inputs)
    others = ", ".join(sorted(rectifiers.others))
    warnings = (f"Only ReLUs are changed; other activations keep their own gradient: {others}.",) if others else ()
    return gradient[0].float().cpu(), warnings
