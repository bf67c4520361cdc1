"""Images with what a conditional VAE is told of each: the value of a concept, and the class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

import numpy as np
import torch
from torch import Tensor

from core.errors import ForetellError
from core.network.classifier import Classifier
from data.types import ImageSet
from inquiry.concepts.conceptsets import Concept
from study.network.sources import class_of_labels, match_classes

LEAST, MOST = 60, 5000
"""Images from which a VAE is learned: at least, and at most; of larger sets they are drawn at random."""
FEWEST = 10
"""Images that show each value of the concept, at least."""
PRESENT, ABSENT = "present", "absent"
NO_CLASS = (
    "The folders name no class of the network, so the VAE is told the concept alone: whatever goes with it counts as "
    "its effect. Put the images into one folder per class."
)


@dataclass(frozen=True)
class ConditionedImages:
    """Inputs (N, C, H, W), and their conditions (N, F): the value of the concept, and the class if F is 2.

    ``values`` and ``classes`` name them; ``warnings`` say what could not be conditioned on.
    """

    inputs: Tensor
    conditions: Tensor
    values: tuple[str, ...]
    classes: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the number of values of each condition."""
        return (len(self.values), len(self.classes))[: self.conditions.shape[1]]

    def only(self, rows: np.ndarray) -> ConditionedImages:
        """Select these images."""
        chosen = torch.from_numpy(rows)
        return replace(self, inputs=self.inputs[chosen], conditions=self.conditions[chosen])

    def count_missing(self, value: int) -> int:
        """Count the classes of which no image shows a value."""
        if self.conditions.shape[1] == 1:
            return 0
        classes = self.conditions[self.conditions[:, 0] == value, 1]
        return len(self.classes) - len(torch.unique(classes))


def condition_images(classifier: Classifier, images: ImageSet, concept: Concept, seed: int) -> ConditionedImages:
    """Read the images of a concept's factor, or of the folders with the concept and without it.

    Raises
    ------
    ForetellError
        A set that does not record each image's value, fewer than `LEAST` images, or `FEWEST` of a value.
    """
    if concept.factor is None:
        return _read_folders(classifier, concept, seed)
    return _read_set(classifier, images, concept.factor, seed)


def _read_set(classifier: Classifier, images: ImageSet, name: str, seed: int) -> ConditionedImages:
    factor = images.factors[name]
    if factor.known is None:
        raise ForetellError(
            f"{images.name} does not record the {name} of each image, from which a VAE would learn it: leave out --by "
            "vae, which changes the images themselves."
        )
    labels = class_of_labels(images, classifier)
    rows = _choose(np.flatnonzero(labels >= 0), seed)
    inputs = torch.stack([classifier.preprocess(images.open(int(i))) for i in rows])
    values = np.array([factor.values.index(factor.known[i]) for i in rows])
    return _condition(classifier, inputs, values, factor.values, labels[rows], ())


def _read_folders(classifier: Classifier, concept: Concept, seed: int) -> ConditionedImages:
    assert concept.images is not None
    assert concept.others is not None
    both = [(source, i, k) for k, source in enumerate((concept.images, concept.others)) for i in range(len(source))]
    chosen = [both[i] for i in _choose(np.arange(len(both)), seed)]
    inputs = torch.stack([classifier.preprocess(source.open(i)) for source, i, _ in chosen])
    labels = _find_classes(classifier, [source.ids[i] for source, i, _ in chosen])
    values, names = np.array([k for *_, k in chosen]), (PRESENT, ABSENT)
    if (labels < 0).any():
        return _condition(classifier, inputs, values, names, np.zeros(len(chosen), dtype=np.int64), (NO_CLASS,))
    return _condition(classifier, inputs, values, names, labels, ())


def _find_classes(classifier: Classifier, ids: Sequence[str]) -> np.ndarray:
    """Find the class that the folder of each image names (N,); -1 where it names none."""
    return np.array(match_classes([PurePosixPath(one).parent.name for one in ids], classifier.categories))


def _choose(rows: np.ndarray, seed: int) -> np.ndarray:
    """Choose at most `MOST` of these rows, in order."""
    if len(rows) < LEAST:
        raise ForetellError(f"A VAE is learned from {LEAST} images or more, and {len(rows)} were given: give more.")
    return np.sort(np.random.default_rng([seed, 3]).permutation(rows)[:MOST])


def _condition(
    classifier: Classifier,
    inputs: Tensor,
    values: np.ndarray,
    names: tuple[str, ...],
    labels: np.ndarray,
    warnings: tuple[str, ...],
) -> ConditionedImages:
    """Make conditions of values (N,) and labels (N,); of the values alone where each class shows one value only."""
    _refuse_rare(values, names)
    classes, places = np.unique(labels, return_inverse=True)
    pairs = len(set(zip(values.tolist(), places.tolist(), strict=True)))
    columns = [values] if pairs == len(classes) else [values, places]
    if warnings:
        columns = [values]
    conditions = torch.from_numpy(np.stack(columns, 1))
    return ConditionedImages(inputs, conditions, names, tuple(classifier.names.short[k] for k in classes), warnings)


def _refuse_rare(values: np.ndarray, names: tuple[str, ...]) -> None:
    for k, count in enumerate(np.bincount(values, minlength=len(names)).tolist()):
        if count < FEWEST:
            raise ForetellError(
                f"{count} images show {names[k]!r}, and {FEWEST} or more are needed to learn it: give a larger set "
                "(--setting size=...), or more images in the folder."
            )
