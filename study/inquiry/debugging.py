"""What in a set does not fit a network's answers: doubtful labels and outliers, each with its evidence."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from core.classifier import Classifier
from core.debugging.labels import LabelErrors, confident_learning
from core.debugging.neighbours import Neighbours, nearest, principal_plane
from core.errors import ForetellError
from core.layers.probe import out_of_fold
from core.teaching.kfac import with_bias
from core.types import Progress
from data.types import ImageSet
from study.network.predictions import Predictions, predict
from study.network.sources import UNMATCHED, plain

FOLDS = 5
Judge = Literal["answers", "features", "both"]
"""What labels are judged by: the network's answers, a linear reader of its features, or both where they agree."""


@dataclass(frozen=True)
class DebuggingResults:
    """A set with what a network says of it.

    Attributes
    ----------
    images, answers, categories
        The images, the answers to them, and what the network calls its classes.
    labels
        None where fewer than two labels are classes of the network, or it does not end in one linear layer.
    read
        As `labels`, by a linear reader of the features that has not seen the image's label, so that it matters not
        whether the network was trained on it. None also where a label has fewer images than `FOLDS`.
    near
        None where it does not end in one linear layer, or there is but one image.
    places, shares
        (N, 2) and (2,) in the plane of the two first principal components of the features; None where there is none.
    """

    images: ImageSet
    answers: Predictions
    categories: tuple[str, ...]
    labels: LabelErrors | None
    read: LabelErrors | None
    near: Neighbours | None
    places: NDArray[np.float64] | None
    shares: NDArray[np.float64] | None

    @property
    def has_known_label(self) -> NDArray[np.bool_]:
        """(N,): whether an image's label is a class of the network, so that right and wrong mean something."""
        known: NDArray[np.bool_] = self.answers.truth != UNMATCHED
        return known

    @property
    def label_names(self) -> NDArray[np.str_]:
        """(N,): what the set says each image is."""
        names: NDArray[np.str_] = np.array(self.images.categories)[self.images.labels]
        return names

    @property
    def class_names(self) -> NDArray[np.str_]:
        """(K + 1,): plain names of the classes, and nothing for the class -1."""
        return np.array([*map(plain, self.categories), ""])

    def find_label_errors(self, judge: Judge = "answers") -> list[int]:
        """The images whose labels are likely to be wrong, the likeliest first: by the answers, unless they agree."""
        roads = {"answers": [self.labels], "features": [self.read], "both": [self.labels, self.read]}[judge]
        found = [road for road in roads if road is not None]
        if len(found) < len(roads):
            return []
        order = np.argsort(np.sum([road.margin for road in found], axis=0), kind="stable")
        return [int(i) for i in order if all(road.likely[i] for road in found)]

    def outliers(self) -> list[int]:
        """All images, the farthest from the others first."""
        return [] if self.near is None else [int(i) for i in np.argsort(-self.near.isolation, kind="stable")]

    def table(self) -> pd.DataFrame:
        """One row an image: its label, the answer, and of what could be found the numbers behind the evidence."""
        answers, names = self.answers, self.class_names
        columns = {
            "picture": self.images.ids,
            "label": self.label_names,
            "predicted": names[answers.predicted],
            "correct": pd.Series(answers.correct, dtype="boolean").mask(~self.has_known_label),
            "confidence": answers.probability,
            "label_probability": answers.truth_probability,
            "entropy": answers.entropy,
        }
        if self.labels is not None:
            doubtful = self.labels.likely
            columns |= {"label_doubtful": doubtful, "rather": np.where(doubtful, names[self.labels.instead], "")}
            columns |= {"margin": self.labels.margin}
        if self.read is not None:
            doubtful = self.read.likely
            columns |= {"features_doubt": doubtful, "features_rather": np.where(doubtful, names[self.read.instead], "")}
            columns |= {"features_margin": self.read.margin}
        if self.near is not None:
            same = self.images.labels[self.near.indices.numpy()] == self.images.labels[:, None]
            columns |= {"neighbours": same.shape[1], "neighbours_of_label": same.sum(1)}
            columns |= {"distance": self.near.isolation, "distance_rank": self.near.rank}
        if self.places is not None:
            columns |= {"component_1": self.places[:, 0], "component_2": self.places[:, 1]}
        return pd.DataFrame(columns)


def debug_classifier(classifier: Classifier, images: ImageSet, cache: Path, progress: Progress) -> DebuggingResults:
    """Ask a network about a set, with or without labels that it knows; killed, its answers are not asked for again."""
    readable = ends_linearly(classifier)
    answers = predict(classifier, images, cache, progress, features=readable, labelled=False)
    labels = read = near = places = shares = None
    if readable:
        logits = with_bias(answers.features) @ classifier.head.T
        with suppress(ForetellError):  # each says what the set lacks for it: then there is no such evidence
            labels = confident_learning(logits.softmax(1).numpy(), answers.truth)
        with suppress(ForetellError):
            read = confident_learning(read_out_of_fold(answers, len(classifier.categories), progress), answers.truth)
        with suppress(ForetellError):
            near = nearest(answers.features, progress=progress)
            places, shares = principal_plane(answers.features)
        answers = replace(answers, features=answers.features[:, :0], sketches=answers.sketches[:, :0])  # not to be kept
    return DebuggingResults(images, answers, classifier.categories, labels, read, near, places, shares)


def read_out_of_fold(answers: Predictions, classes: int, progress: Progress) -> NDArray[np.float64]:
    """(N, classes): what readers of the features give each image, each trained without it; 0 without a label."""
    known = np.flatnonzero(answers.truth != UNMATCHED)
    truth = torch.from_numpy(answers.truth[known])
    names, _, p = out_of_fold(answers.features[known], truth, folds=FOLDS, progress=progress)
    found = np.zeros((len(answers.truth), classes))
    found[np.ix_(known, names)] = p
    return found


def ends_linearly(classifier: Classifier) -> bool:
    """Whether features of its last layer can be had."""
    with suppress(ForetellError):
        return len(classifier.head) > 0
    return False


def label_evidence(found: DebuggingResults, i: int) -> list[str]:
    """Why an image's label is doubtful, line by line."""
    assert found.labels is not None
    assert found.near is not None
    answers, labels, names = found.answers, found.labels, found.class_names
    own, other = int(answers.truth[i]), _rather(found, i)
    near = answers.truth[found.near.indices[i].numpy()]
    return [
        f"labelled {found.label_names[i]}, rather {names[other]}",
        f"The AI gives {names[own]} {answers.truth_probability[i]:.0%}; pictures labelled so get "
        f"{labels.thresholds[own]:.0%} on average.",
        f"It says {names[answers.predicted[i]]}, {answers.probability[i]:.0%}.",
        *_read_evidence(found, i),
        f"Of the {len(near)} nearest {(near == own).sum()} are labelled {names[own]}, {(near == other).sum()} "
        f"{names[other]}.",
    ]


def _rather(found: DebuggingResults, i: int) -> int:
    """The other class by the road that doubts the label, the answers' first."""
    roads = [road for road in (found.labels, found.read) if road is not None]
    return int(next(road for road in roads if road.likely[i]).instead[i])


def _read_evidence(found: DebuggingResults, i: int) -> list[str]:
    if found.read is None:
        return []
    names, other = found.class_names, int(found.read.instead[i])
    says = f"doubts the label: rather {names[other]}" if found.read.likely[i] else "does not doubt the label"
    return [f"A linear probe of its features, trained without this image, {says}."]


def outlier_evidence(found: DebuggingResults, i: int) -> list[str]:
    """Why an image is an outlier, line by line."""
    assert found.near is not None
    away, near = found.near.isolation, found.near.indices[i].numpy()
    verdict = "" if not found.has_known_label[i] else ", right" if found.answers.correct[i] else ", wrong"
    same = int((found.images.labels[near] == found.images.labels[i]).sum())
    return [
        f"rank {found.near.rank[i]:,} of {len(away):,}",
        f"Labelled {found.label_names[i]}; the AI says {found.class_names[found.answers.predicted[i]]}, "
        f"{found.answers.probability[i]:.0%}{verdict}.",
        f"Its {len(near)} nearest are within {away[i]:.2f}, of half of the pictures within {np.median(away):.2f}; "
        f"{same} of them {'is' if same == 1 else 'are'} labelled as it is.",
    ]
