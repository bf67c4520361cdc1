"""Images from which a concept is learned: drawn by intervention, or taken from a folder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.registry import Registry
from data.types import ImageSet
from inquiry.units.exemplars import ImageCollection, open_images

OTHERS = 3
"""Images without the concept, for each with it."""


@dataclass(frozen=True)
class Concept:
    """A ``value`` of a ``factor`` of a set, or the ``images`` of a folder against ``others``."""

    name: str
    factor: str | None = None
    value: str = ""
    images: ImageCollection | None = None
    others: ImageCollection | None = None


@dataclass(frozen=True)
class ConceptInputs:
    """Inputs (N, C, H, W) with the concept, (M, C, H, W) without it, (B, C, H, W) of the class."""

    concept: Tensor
    others: Tensor
    target: Tensor


def parse_concepts(images: ImageSet, names: Iterable[str], random: str | None) -> list[Concept]:
    """Parse ``FACTOR=VALUE``, ``FACTOR`` or a folder into concepts.

    Raises
    ------
    ForetellError
        No concept, an unknown value, a missing folder, or a folder without ``random`` images.
    """
    concepts = [concept for name in names for concept in _parse_concept(images, name, random)]
    if not concepts:
        raise ForetellError("No concept was named: give FACTOR=VALUE, such as context=sea, or a folder of images.")
    return list({concept.name: concept for concept in concepts}.values())


def _parse_concept(images: ImageSet, name: str, random: str | None) -> list[Concept]:
    factor, _, value = name.partition("=")
    if factor in images.factors:
        values = images.factors[factor].values
        if value and value not in values:
            raise ForetellError(Registry(f"value of {factor}", dict.fromkeys(values, "")).unknown(value))
        return [Concept(f"{factor}={one}", factor, one) for one in values if value in ("", one)]
    if not Path(name).is_dir():
        known = f"can be changed in {', '.join(images.factors)}" if images.factors else "cannot be changed"
        raise ForetellError(
            f"{name!r} is not a folder of images, and {images.name} {known}: give FACTOR=VALUE or a folder."
        )
    if random is None:
        raise ForetellError(f"The concept {name!r} is a folder: also give a folder of other images (random).")
    return [Concept(Path(name).name, images=open_images(name), others=open_images(random))]


def draw_inputs(
    classifier: Classifier, concept: Concept, images: ImageSet, labels: np.ndarray, target: int, count: int, seed: int
) -> ConceptInputs:
    """Draw images with the concept and without it, and those of the class.

    In sets with interventions, no concept image is of the class, and the others show random other values of the factor.

    Raises
    ------
    ForetellError
        Too few images of the class or of the concept.
    """
    rng = np.random.default_rng(seed)
    own = rng.permutation(np.flatnonzero(labels == target))
    if not len(own):
        name = classifier.categories[target]
        raise ForetellError(f"{images.name} has no image of {name!r}: give another or a larger set.")
    shown, others = draw_concept_inputs(classifier, concept, images, np.flatnonzero(labels != target), count, rng)
    return ConceptInputs(shown, others, _inputs(classifier, (images.open(int(i)) for i in own[: 2 * count])))


def draw_concept_inputs(
    classifier: Classifier, concept: Concept, images: ImageSet, rows: np.ndarray, count: int, rng: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """Draw inputs with the concept and without it, by intervention on the images ``rows`` of a set.

    Raises
    ------
    ForetellError
        Too few images.
    """
    if concept.factor is not None:
        drawn = _draw_by_intervention(concept, images, rng.permutation(rows), count, rng)
    else:
        drawn = _from_folders(concept, count, rng)
    return _inputs(classifier, drawn[0]), _inputs(classifier, drawn[1])


def _inputs(classifier: Classifier, images: Iterable[Image.Image]) -> Tensor:
    return torch.stack([classifier.preprocess(image) for image in images])


def _draw_by_intervention(
    concept: Concept, images: ImageSet, rows: np.ndarray, count: int, rng: np.random.Generator
) -> tuple[list[Image.Image], list[Image.Image]]:
    factor = images.factors[str(concept.factor)]
    if len(rows) < (1 + OTHERS) * count:
        raise ForetellError(
            f"{count} images of a concept and {OTHERS * count} others are more than the {len(rows)} of {images.name} "
            "that may show it: give fewer (--count), or a larger set."
        )
    rest = rng.choice([value for value in factor.values if value != concept.value], OTHERS * count)
    shown = [factor.do(int(i), concept.value) for i in rows[:count]]
    return shown, [factor.do(int(i), str(value)) for i, value in zip(rows[count:], rest, strict=False)]


def _from_folders(
    concept: Concept, count: int, rng: np.random.Generator
) -> tuple[list[Image.Image], list[Image.Image]]:
    shown, others = (
        [] if images is None else [images.open(int(i)) for i in rng.permutation(len(images))[:most]]
        for images, most in ((concept.images, count), (concept.others, OTHERS * count))
    )
    if len(others) < 2 * len(shown):
        raise ForetellError(
            f"{len(shown)} images of {concept.name!r} and {len(others)} others: give twice as many others (random)."
        )
    return shown, others
