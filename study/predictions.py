"""What the classifier says of every image of a set, kept in the workspace so that it is asked once."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import entr
from torch import Tensor

from core.classifier import Classifier
from core.types import Progress
from data.types import ImageSet
from study.files import replacing
from study.reading import batches
from study.sources import class_of_labels

Indices = NDArray[np.int64]
Floats = NDArray[np.float32]

SHARD = 512
"""Pictures whose answers are kept in one file."""


@dataclass(frozen=True)
class Predictions:
    """Per image of a set: true class (-1: not a class of the classifier), predicted class, and its probability.

    ``truth_probability`` is that of the true class (NaN where there is none), ``entropy`` that of the whole answer in
    bits. ``mean_probability`` is (K, K): row c is the mean softmax answer over the images whose true class is c (zeros
    where there is none); ``features`` (N, M) of the last linear layer, or (N, 0) where not asked for.
    """

    truth: Indices
    predicted: Indices
    probability: Floats
    mean_probability: NDArray[np.float64]
    features: Tensor
    truth_probability: Floats
    entropy: Floats

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

    The key covers the weights, the images and whether features were asked for. Answers are kept in shards of `SHARD`
    pictures, so that a killed run goes on where it was.
    """
    key = hashlib.sha256(f"{classifier.fingerprint}|{images.digest}|{features}".encode()).hexdigest()
    shards = []
    for start in range(0, len(images), SHARD):
        shards.append(_shard(classifier, images, cache / "predictions" / key / f"{start:08d}.npz", start, features))
        progress(min(start + SHARD, len(images)), len(images), f"asking the AI about {images.name}")
    probabilities, found = (np.concatenate(parts) for parts in zip(*shards, strict=True))
    truth = class_of_labels(images, classifier)
    predicted = probabilities.argmax(1).astype(np.int64)
    mean = _mean_by_class(truth, probabilities)
    own = np.where(truth >= 0, probabilities[np.arange(len(truth)), truth], np.float32(np.nan))
    bits = entr(probabilities).sum(1) / np.log(2)
    return Predictions(truth, predicted, probabilities.max(1), mean, torch.from_numpy(found), own, bits)


def _shard(classifier: Classifier, images: ImageSet, path: Path, start: int, features: bool) -> tuple[Floats, Floats]:
    """Probabilities (n, K) and features (n, M) of the pictures from ``start`` on, from disk if they are there whole."""
    with suppress(OSError, ValueError, KeyError, BadZipFile), np.load(path) as stored:
        return stored["probabilities"], stored["features"]
    answers, seen = [], []
    for batch in batches(classifier, images, start, min(start + SHARD, len(images))):
        answers.append(classifier.probabilities(batch))
        seen.append(classifier.features(batch) if features else torch.zeros(len(batch), 0))
    probabilities, found = torch.cat(answers).numpy(), torch.cat(seen).numpy()
    with replacing(path) as file:
        np.savez(file, probabilities=probabilities, features=found)
    return probabilities, found


def _mean_by_class(truth: Indices, probabilities: Floats) -> NDArray[np.float64]:
    classes = probabilities.shape[1]
    sums = np.zeros((classes, classes))
    known = truth >= 0
    np.add.at(sums, truth[known], probabilities[known])
    counts = np.bincount(truth[known], minlength=classes)[:, None]
    return sums / np.maximum(counts, 1)
