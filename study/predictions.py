"""What the classifier says of every image of a set, kept in the workspace so that it is asked once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import entr
from torch import Tensor

from core.classifier import Classifier
from core.device import chunk_size
from core.types import Progress
from data.types import ImageSet
from study.files import replacing
from study.sources import class_of_labels

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Predictions:
    """Per image of a set: true class (-1: not a class of the classifier), predicted class, and its probability.

    ``truth_probability`` is that of the true class (NaN where there is none), ``entropy`` that of the whole answer in
    bits. ``mean_probability`` is (K, K): row c is the mean softmax answer over the images whose true class is c (zeros
    where there is none); ``features`` (N, M) of the last linear layer, or an empty tensor where not asked for.
    """

    truth: Indices
    predicted: Indices
    probability: NDArray[np.float32]
    mean_probability: NDArray[np.float64]
    features: Tensor
    truth_probability: NDArray[np.float32]
    entropy: NDArray[np.float32]

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Whether the classifier is right, per image."""
        right: NDArray[np.bool_] = self.truth == self.predicted
        return right

    def confusion(self, classes: int) -> Indices:
        """(K, K) counts: row true class, column predicted class."""
        known = self.truth >= 0
        counts = np.zeros((classes, classes), dtype=np.int64)
        np.add.at(counts, (self.truth[known], self.predicted[known]), 1)
        return counts


def predict(
    classifier: Classifier, images: ImageSet, cache: Path, progress: Progress, *, features: bool = False
) -> Predictions:
    """Ask the classifier about every image, or read its answers of an earlier time.

    The key covers the weights, the images and whether features were asked for.
    """
    key = hashlib.sha256(f"{classifier.fingerprint}|{images.digest}|{features}".encode()).hexdigest()
    path = cache / "predictions" / f"{key}.npz"
    if not path.is_file():
        probabilities, seen = _answers(classifier, images, progress, features)
        with replacing(path) as file:
            np.savez(file, probabilities=probabilities, features=seen)
    with np.load(path) as stored:
        probabilities = stored["probabilities"]
        found = torch.from_numpy(stored["features"])
    truth = class_of_labels(images, classifier)
    predicted = probabilities.argmax(1).astype(np.int64)
    mean = _mean_by_class(truth, probabilities)
    own = np.where(truth >= 0, probabilities[np.arange(len(truth)), truth], np.float32(np.nan))
    return Predictions(truth, predicted, probabilities.max(1), mean, found, own, entr(probabilities).sum(1) / np.log(2))


def _answers(
    classifier: Classifier, images: ImageSet, progress: Progress, features: bool
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    probabilities, seen = [], []
    for batch in _batches(classifier, images, progress):
        probabilities.append(classifier.probabilities(batch))
        if features:
            seen.append(classifier.features(batch))
    empty = torch.zeros(0, 0)
    return torch.cat(probabilities).numpy(), torch.cat(seen or [empty]).numpy()


def _batches(classifier: Classifier, images: ImageSet, progress: Progress) -> Iterator[Tensor]:
    size = chunk_size(torch.zeros(classifier.input_shape))
    for start in range(0, len(images), size):
        stop = min(start + size, len(images))
        yield torch.stack([classifier.preprocess(images.open(i)) for i in range(start, stop)])
        progress(stop, len(images), f"asking the AI about {images.name}")


def _mean_by_class(truth: Indices, probabilities: NDArray[np.float32]) -> NDArray[np.float64]:
    classes = probabilities.shape[1]
    sums = np.zeros((classes, classes))
    known = truth >= 0
    np.add.at(sums, truth[known], probabilities[known])
    counts = np.bincount(truth[known], minlength=classes)[:, None]
    return sums / np.maximum(counts, 1)
