"""Predictions for every image of a set, kept in the workspace so that each is computed once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import entr
from torch import Tensor

from core.network.classifier import Classifier
from core.network.decoding import read_batches
from core.network.device import describe_arithmetic
from core.teaching.kfac import with_bias
from core.types import Progress
from data.types import ImageSet
from study.network.duplicates import sketches
from study.network.sources import class_of_labels
from study.workspace.blocks import load_columns
from study.workspace.files import gather_results, open_replacement

Indices = NDArray[np.int64]
Floats = NDArray[np.float32]

PARTS = ("probabilities", "features", "sketches")
SHARD = 512
"""Images whose predictions are kept in one file."""


@dataclass(frozen=True)
class Predictions:
    """Per image of a set: true class (-1: not a class of the classifier), predicted class, and its probability.

    ``truth_probability`` is that of the true class (NaN where there is none), ``entropy`` that of the whole softmax in
    bits. ``mean_probability`` is (K, K): row c is the mean softmax over the images whose true class is c (zeros
    where there is none); ``features`` (N, M) of the last linear layer, or (N, 0) where not asked for,
    and so the ``sketches`` (N, d) that near-duplicates are known by (`study.network.duplicates`).
    """

    truth: Indices
    predicted: Indices
    probability: Floats
    mean_probability: NDArray[np.float64]
    features: Tensor
    truth_probability: Floats
    entropy: Floats
    sketches: Tensor

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Whether the classifier is right, per image."""
        right: NDArray[np.bool_] = self.truth == self.predicted
        return right

    def confusion(self, classes: int) -> Indices:
        """Return (K, K) counts: row true class, column predicted class."""
        known = self.truth >= 0
        counts = np.zeros((classes, classes), dtype=np.int64)
        np.add.at(counts, (self.truth[known], self.predicted[known]), 1)
        return counts


def predict(
    classifier: Classifier,
    images: ImageSet,
    cache: Path,
    progress: Progress,
    *,
    features: bool = False,
    labelled: bool = True,
) -> Predictions:
    """Predict every image of a set, or read the predictions of an earlier time.

    A set of which no category is a class of the classifier is refused, or ``labelled`` False: taken without any truth.

    The key covers the weights, the transforms, the images, whether features were asked for, and what sums are made
    with: a study built
    after a look at its images has the hash of one built before. Predictions are kept in shards of `SHARD`
    images, so that a killed run resumes.
    """
    shards = _shards(classifier, images, cache, progress, features)
    probabilities, vectors, seen = (np.concatenate(parts) for parts in zip(*shards, strict=True))
    truth = class_of_labels(images, classifier, refuse=labelled)
    predicted = probabilities.argmax(1).astype(np.int64)
    mean = _mean_by_class(truth, probabilities)
    own = np.where(truth >= 0, probabilities[np.arange(len(truth)), truth], np.float32(np.nan))
    bits = entr(probabilities).sum(1) / np.log(2)
    tensors = torch.from_numpy(vectors), torch.from_numpy(seen)
    return Predictions(truth, predicted, probabilities.max(1), mean, tensors[0], own, bits, tensors[1])


def probabilities_of(
    classifier: Classifier, images: ImageSet, cache: Path, progress: Progress, *, features: bool = False
) -> Floats:
    """Return all probabilities (N, K), kept where those of `predict` with the same ``features`` are."""
    shards = _shards(classifier, images, cache, progress, features)
    return np.concatenate([shard[0] for shard in shards])


def count_missing(classifier: Classifier, images: ImageSet, cache: Path, *, features: bool = False) -> int:
    """Count the images of a set that `predict` would have to pass through the network with the same ``features``."""
    folder = _folder(classifier, images, cache, features)
    starts = range(0, len(images), SHARD)
    return sum(min(SHARD, len(images) - start) for start in starts if not (folder / f"{start:08d}.npz").is_file())


def _folder(classifier: Classifier, images: ImageSet, cache: Path, features: bool) -> Path:
    """Return the folder of the shards, named by everything that they depend on."""
    network = (classifier.fingerprint, classifier.transforms_digest)
    parts = (*network, images.digest, str(features), describe_arithmetic(classifier.device))
    return cache / "predictions" / hashlib.sha256("|".join(parts).encode()).hexdigest()


def _shards(
    classifier: Classifier, images: ImageSet, cache: Path, progress: Progress, features: bool
) -> list[list[Floats]]:
    """Yield of each shard the arrays that `PARTS` names, computed or read."""
    folder = _folder(classifier, images, cache, features)

    def file(start: int) -> Path:
        return folder / f"{start:08d}.npz"

    return gather_results(
        range(0, len(images), SHARD),
        file,
        lambda start: _load_shard(file(start)),
        lambda start, _: _compute_shard(classifier, images, file(start), start, features),
        progress,
        f"predicting {images.name}, {SHARD} images each",
    )


def _load_shard(path: Path) -> list[Floats] | None:
    """Load a shard that is there whole: probabilities (n, K), features (n, M) and sketches (n, d)."""
    columns = load_columns(path)
    return None if columns is None or not columns.keys() >= set(PARTS) else [columns[name] for name in PARTS]


def _compute_shard(classifier: Classifier, images: ImageSet, path: Path, start: int, features: bool) -> list[Floats]:
    """Compute the shard of the images from ``start`` on, asked for and kept."""
    made: list[list[Tensor]] = []
    for batch in read_batches(classifier, images.open, start, min(start + SHARD, len(images))):
        if features:  # one pass for both
            vectors = classifier.features(batch)
            logits = with_bias(vectors) @ classifier.head.T
            made.append([logits.softmax(1).float(), vectors, sketches(batch)])
        else:
            nothing = torch.zeros(len(batch), 0)
            made.append([classifier.probabilities(batch), nothing, nothing])
    arrays = [torch.cat(parts).numpy() for parts in zip(*made, strict=True)]
    with open_replacement(path) as file:
        np.savez(file, probabilities=arrays[0], features=arrays[1], sketches=arrays[2])
    return arrays


def _mean_by_class(truth: Indices, probabilities: Floats) -> NDArray[np.float64]:
    classes = probabilities.shape[1]
    sums = np.zeros((classes, classes))
    known = truth >= 0
    np.add.at(sums, truth[known], probabilities[known])
    counts = np.bincount(truth[known], minlength=classes)[:, None]
    return sums / np.maximum(counts, 1)
