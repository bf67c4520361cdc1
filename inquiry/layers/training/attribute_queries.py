"""How attributes of networks are read from their predictions: for fixed images, crafted ones, or a single one each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.training.metamodel import Metamodels, MetamodelSettings, Output, encode_outputs, train_metamodels
from core.types import Progress
from data.types import Relatives
from study.network.sources import match_classes


@dataclass(frozen=True)
class Predictions:
    """Log probabilities (n, K) of a network for n images, and its classes (n, K) by falling probability."""

    log_p: Tensor
    order: Tensor


@dataclass(frozen=True)
class Reading:
    """What is read of the attributes of a network, and of relatives that nothing was learned from.

    Attributes
    ----------
    correct
        (R, A): whether the value of each attribute of each relative is predicted.
    predicted
        For each attribute of the network, the number of the predicted value and its probability; None where the
        prediction is no value.
    """

    correct: NDArray[np.bool_]
    predicted: tuple[tuple[int, float] | None, ...]


def ask_network(classifier: Classifier, known: Relatives) -> Predictions:
    """Predict the images of the relatives by a network, in the order of their classes.

    Raises
    ------
    ForetellError
        The network has other classes than the relatives.
    """
    return predict_images(classifier, known, known.open, known.count)


def predict_images(
    classifier: Classifier, known: Relatives, open_image: Callable[[int], Image.Image], count: int
) -> Predictions:
    """Predict images by a network, in the order of the relatives' classes.

    Raises
    ------
    ForetellError
        The network has other classes than the relatives.
    """
    order = match_classes(known.categories, classifier.categories)
    if sorted(order) != list(range(len(classifier.categories))):
        raise ForetellError(
            f"The relatives tell {len(known.categories)} classes apart ({', '.join(known.categories[:4])}, ...) and "
            f"{classifier.name} others ({', '.join(classifier.categories[:4])}, ...): ask a network with the same "
            "classes, or train relatives with its classes, as data/scenes/relatives/train.py does."
        )
    inputs = torch.stack([classifier.preprocess(open_image(k)) for k in range(count)])
    log_p = classifier.logits(inputs)[:, order].log_softmax(1)
    return Predictions(log_p.clamp(min=known.floor), log_p.argsort(1, descending=True))


def check_side(classifier: Classifier, known: Relatives) -> None:
    """Refuse a network whose input does not show each pixel of a crafted image as a square of whole pixels.

    Raises
    ------
    ForetellError
        The sides of its input are no multiples of those of crafted images.
    """
    height, width = classifier.preprocess(known.single.open(0)).shape[-2:]
    if height != width or height % known.side:
        raise ForetellError(
            f"{classifier.name} reads {width} x {height} px, which blurs crafted images of {known.side} x {known.side} "
            f"px: ask a network whose input is a multiple of {known.side} px wide and high, or choose queries=images."
        )


def read_by_images(
    known: Relatives,
    asked: Predictions,
    output: Output,
    settings: MetamodelSettings,
    generator: torch.Generator,
    progress: Progress,
) -> Reading:
    """Read attributes by metamodels of what networks disclose about the relatives' images (kennen-o)."""
    log_p, order = torch.from_numpy(known.log_p), torch.from_numpy(known.order)
    trained = _train(known, encode_outputs(log_p, order, output), settings, generator, None, progress)
    return _read(known, trained, encode_outputs(asked.log_p, asked.order, output))


def read_by_crafted(
    known: Relatives,
    classifier: Classifier,
    output: Output,
    settings: MetamodelSettings,
    generator: torch.Generator,
    progress: Progress,
) -> Reading:
    """Read attributes by metamodels, each with images that were crafted for it (kennen-io)."""
    own = known.crafted[output]
    folds, _, each, classes = own.outputs.shape
    features = torch.from_numpy(own.outputs).flatten(2)
    parts = torch.from_numpy(known.parts)
    trained = _train(known, features, replace(settings, folds=folds), generator, parts, progress)
    asked = predict_images(classifier, known, own.open, folds * each)
    shape = (folds, each, classes)
    return _read(known, trained, encode_outputs(asked.log_p.view(shape), asked.order.view(shape), output))


def read_by_single(known: Relatives, classifier: Classifier) -> Reading:
    """Read each attribute off the class that is predicted of one image (kennen-i).

    The probability is the share, by the rule of succession, of the held-out relatives with the same predicted class
    that have the value.
    """
    single, values = known.single, known.values
    asked = predict_images(classifier, known, single.open, len(known.attributes)).order[:, 0].tolist()
    predicted: list[tuple[int, float] | None] = []
    for a, (k, names) in enumerate(zip(asked, known.attributes.values(), strict=True)):
        alike = single.predicted[:, a] == k
        share = (int((values[alike, a] == k).sum()) + 1) / (int(alike.sum()) + len(names))
        predicted.append((k, share) if k < len(names) else None)
    return Reading(single.predicted == values, tuple(predicted))


def _train(
    known: Relatives,
    features: Tensor,
    settings: MetamodelSettings,
    generator: torch.Generator,
    parts: Tensor | None,
    progress: Progress,
    lessons: Tensor | None = None,
) -> Metamodels:
    counts = tuple(len(names) for names in known.attributes.values())
    values = torch.from_numpy(known.values)
    return train_metamodels(
        features, values, counts, settings, generator=generator, parts=parts, lessons=lessons, progress=progress
    )


def read_parts(
    known: Relatives,
    features: Tensor,
    settings: MetamodelSettings,
    generator: torch.Generator,
    parts: Tensor,
    lessons: Tensor,
    progress: Progress,
) -> NDArray[np.bool_]:
    """Say whether the attributes of each relative are predicted (R, A) by the metamodel that tests its part.

    ``lessons`` (F, R) are the relatives that each metamodel learns from.
    """
    return _check_held_out(known, _train(known, features, settings, generator, parts, progress, lessons))


def _check_held_out(known: Relatives, trained: Metamodels) -> NDArray[np.bool_]:
    held_out = np.stack([own.argmax(1).numpy() for own in trained.held_out], 1)
    correct: NDArray[np.bool_] = held_out == known.values
    return correct


def _read(known: Relatives, trained: Metamodels, features: Tensor) -> Reading:
    results = [(int(own.argmax()), float(own.max())) for own in trained.predict(features)]
    return Reading(_check_held_out(known, trained), tuple(results))
