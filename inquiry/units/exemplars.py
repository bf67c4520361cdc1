"""Exemplars: the images of a set that activate a unit most, the part that the unit sees, and a deconvnet projection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from core.attribution.common import refuse_shape
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.types import Progress, silent
from core.units.display import convert_to_colours
from core.units.exemplars import find_receptive_field, projection, top_activations
from core.units.unit import READING, Unit, find_layer_shape, response
from data.types import ImageSet
from inquiry.files.image_files import find_images, open_image
from study.network.sources import open_set, set_named
from study.plan.config import ImageSource

COUNT = 9
"""Images shown for a unit, as in the figures of Zeiler & Fergus 2013 (arXiv:1311.2901)."""
BLOCK = 32
"""Images opened at a time."""

PixelBox = tuple[int, int, int, int]


@dataclass(frozen=True)
class ImageCollection:
    """Images to search: the collection's name, the name of each, and a function that opens one as RGB."""

    name: str
    ids: tuple[str, ...]
    open: Callable[[int], Image.Image]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Exemplar:
    """One image that activates a unit.

    Attributes
    ----------
    index, id
        Its position and name in the set.
    activation
        Activation of the unit.
    place
        Row and column in the feature map of this activation; None if the layer has no places.
    box
        Top, left, bottom, right (px of the input, the last two exclusive): the receptive field of that place.
    shown
        (H, W, 3) uint8: the image as the network sees it.
    projection
        (C, H, W) float32, by a deconvnet from the unit down to the pixels; None if there is none.
    """

    index: int
    id: str
    activation: float
    place: tuple[int, int] | None
    box: PixelBox
    shown: NDArray[np.uint8]
    projection: Tensor | None


@dataclass(frozen=True)
class Exemplars:
    """The images that activate a unit most, the strongest first, with the number searched and any warnings."""

    unit: Unit
    set_name: str
    n_searched: int
    exemplars: tuple[Exemplar, ...]
    warnings: tuple[str, ...]


def open_images(source: str) -> ImageCollection:
    """Open ``"scenes"``, the built-in standard images, or every image of a folder.

    Raises
    ------
    ForetellError
        No such folder, or no image in it.
    """
    if source == "scenes":
        return of_set(open_set(ImageSource.model_validate({"set": "scenes", "split": "standard"}), Path.cwd()))
    files = find_images([Path(source)])
    paths = list(files.values())
    return ImageCollection(source, tuple(files), lambda i: open_image(paths[i]))


def open_requested(
    source: str | None, image_set: str, settings: Mapping[str, Any]
) -> tuple[ImageCollection, ImageSet | None]:
    """Open the images of `open_images`; or, without a source, those of a registered set, and return that set too."""
    if source is not None:
        return open_images(source), None
    images = set_named(image_set, settings)
    return of_set(images), images


def of_set(images: ImageSet) -> ImageCollection:
    """Use an image set without its labels."""
    return ImageCollection(images.name, images.ids, images.open)


def exemplars(
    classifier: Classifier, unit: Unit, images: ImageCollection, *, count: int = COUNT, progress: Progress = silent
) -> Exemplars:
    """Find the ``count`` images with the highest activation of ``unit``.

    For a channel of a feature map, the largest activation over all places counts.
    """
    total = len(images)

    def report_progress(done: int, _: int, what: str) -> None:
        progress(done, total, what)

    if len(find_layer_shape(classifier, unit)) == 1 or unit.row is not None:
        ranked = _rank_images(classifier, unit, images, count, report_progress)
    else:
        ranked = _strongest_places(classifier, unit, images, count, report_progress)
    records, warnings = [], _warn_of_ties([activation for _, _, activation in ranked])
    for i, at, activation in ranked:
        one, said = _exemplar(classifier, at, images, i, activation)
        records.append(one)
        warnings |= dict.fromkeys(said)
        progress(len(records), len(ranked), "projections")
    warnings |= _warn_without_switches(classifier, ranked[0][1], records[0].projection)
    return Exemplars(unit, images.name, total, tuple(records), tuple(warnings))


RankedImages = list[tuple[int, Unit, float]]
"""Positions in the set, the unit at its strongest place there, and its activation; the strongest first."""


def _strongest_places(
    classifier: Classifier, unit: Unit, images: ImageCollection, count: int, progress: Progress
) -> RankedImages:
    top = top_activations(classifier, unit, open_blocks(classifier, images), count=count, progress=progress)
    rows = zip(top.images.tolist(), top.places.tolist(), top.activations.tolist(), strict=True)
    return [(i, replace(unit, row=row, column=column), activation) for i, (row, column), activation in rows]


@torch.no_grad()
def _rank_images(
    classifier: Classifier, unit: Unit, images: ImageCollection, count: int, progress: Progress
) -> RankedImages:
    activations: list[float] = []
    for block in open_blocks(classifier, images):
        activations += response(classifier, unit, block.to(classifier.device)).float().tolist()
        progress(len(activations), len(images), READING)
    order = np.argsort(-np.array(activations), kind="stable")[:count].tolist()
    return [(i, unit, activations[i]) for i in order]


def open_blocks(classifier: Classifier, images: ImageCollection) -> Iterator[Tensor]:
    """Open all images as inputs (n, C, H, W), `BLOCK` at a time."""
    for start in range(0, len(images), BLOCK):
        inputs = [classifier.preprocess(images.open(i)) for i in range(start, min(start + BLOCK, len(images)))]
        for one in inputs:
            refuse_shape(classifier, one[None])
        yield torch.stack(inputs)


def _warn_of_ties(activations: list[float]) -> dict[str, None]:
    if len(activations) < 2 or activations[0] > activations[-1]:
        return {}
    return {
        f"The unit's activation is {activations[0]:.4g} for all of these images alike. Choose another "
        "channel, the layer before the ReLU, or more images.": None
    }


SAME_PROJECTION = (
    "The projection is the same for every image, only shifted: the network has no max pooling whose switches would "
    "pass the image to a deconvnet."
)


def _warn_without_switches(classifier: Classifier, at: Unit, projected: Tensor | None) -> dict[str, None]:
    """Warn that without max-pooling switches a deconvnet shows the weights alone (Springenberg et al. 2014,
    arXiv:1412.6806, section 3.4)."""
    if projected is None or not torch.equal(projected, projection(classifier, at, classifier.fill("mean"))[0]):
        return {}
    return {SAME_PROJECTION: None}


def _exemplar(
    classifier: Classifier, at: Unit, images: ImageCollection, i: int, activation: float
) -> tuple[Exemplar, tuple[str, ...]]:
    inputs = classifier.preprocess(images.open(i))
    box, place = (0, 0, *inputs.shape[1:]), None
    if at.row is not None and at.column is not None:
        box, place = find_receptive_field(classifier, at), (at.row, at.column)
    try:
        projected, warnings = projection(classifier, at, inputs)
    except ForetellError as error:
        projected, warnings = None, (str(error),)
    shown = convert_to_colours(classifier, inputs[None])[0].numpy()
    return Exemplar(i, images.ids[i], activation, place, box, shown, projected), warnings
