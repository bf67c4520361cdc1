"""Images that contradict a network's predictions: likely label errors and outliers, each with its evidence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from core.class_names import shorten_names
from core.debugging.labels import LabelErrors, confident_learning
from core.debugging.neighbours import Neighbours, nearest, principal_plane
from core.debugging.slices import ErrorSlices
from core.errors import ForetellError
from core.layers.probe import out_of_fold
from core.network.classifier import Classifier
from core.teaching.kfac import with_bias
from core.types import Progress
from data.types import ImageSet
from inquiry.debugging.slices import find_labelled_slices, tabulate_slices
from inquiry.files.facts import facts_of
from study.network.predictions import Predictions, predict
from study.network.sources import UNMATCHED, open_classifier, set_named
from study.workspace.blocks import table_files
from study.workspace.files import write_whole
from study.workspace.spreadsheets import csv_text

FOLDS = 5
Judge = Literal["predictions", "features", "both"]
"""Evidence by which labels are judged: the network's predictions, a linear probe of its features, or both."""

ORDINALS = {1: "st", 2: "nd", 3: "rd"}


@dataclass(frozen=True)
class DebuggingResults:
    """Results of debugging a set with a network.

    Attributes
    ----------
    images, predictions, categories
        The images, the predictions for them, and the names of the network's classes.
    labels
        None if fewer than two labels are classes of the network, or it does not end in one linear layer.
    read
        As `labels`, by a linear probe of the features that was trained without the image, so that it does not matter
        whether the network was trained on it. None also if a label has fewer images than `FOLDS`.
    near
        None if the network does not end in one linear layer, or there is only one image.
    slices
        Groups of similar images on which the network errs more often, or why there are none.
    places, shares
        (N, 2) and (2,) in the plane of the two first principal components of the features; None if there is none.
    """

    images: ImageSet
    predictions: Predictions
    categories: tuple[str, ...]
    labels: LabelErrors | None
    read: LabelErrors | None
    near: Neighbours | None
    slices: ErrorSlices | str
    places: NDArray[np.float64] | None
    shares: NDArray[np.float64] | None

    @property
    def has_known_label(self) -> NDArray[np.bool_]:
        """Say of each image whether its label is a class of the network, so that it can be right or wrong, (N,)."""
        known: NDArray[np.bool_] = self.predictions.truth != UNMATCHED
        return known

    @property
    def label_names(self) -> NDArray[np.str_]:
        """Name the label of each image, (N,)."""
        names: NDArray[np.str_] = np.array(self.images.categories)[self.images.labels]
        return names

    @property
    def class_names(self) -> NDArray[np.str_]:
        """Name the classes in plain words, (K + 1,), with an empty name for the class -1."""
        return np.array([*shorten_names(self.categories), ""])

    def find_label_errors(self, judge: Judge = "predictions") -> list[int]:
        """List the images with likely label errors, the likeliest first: by the predictions, unless both must agree."""
        evidence = {"predictions": [self.labels], "features": [self.read], "both": [self.labels, self.read]}[judge]
        errors = [one for one in evidence if one is not None]
        if len(errors) < len(evidence):
            return []
        order = np.argsort(np.sum([one.margin for one in errors], axis=0), kind="stable")
        return [int(i) for i in order if all(one.likely[i] for one in errors)]

    def outliers(self) -> list[int]:
        """List all images, the farthest from the others first."""
        return [] if self.near is None else [int(i) for i in np.argsort(-self.near.isolation, kind="stable")]

    def table(self) -> pd.DataFrame:
        """Tabulate, one row per image, its label, the prediction, and the numbers behind the evidence."""
        predictions, names = self.predictions, self.class_names
        columns = {
            "image": self.images.ids,
            "label": self.label_names,
            "predicted": names[predictions.predicted],
            "correct": pd.Series(predictions.correct, dtype="boolean").mask(~self.has_known_label),
            "confidence": predictions.probability,
            "label_probability": predictions.truth_probability,
            "entropy": predictions.entropy,
        }
        if self.labels is not None:
            likely, instead = self.labels.likely, names[self.labels.instead]
            columns |= {"label_error": likely, "rather": np.where(likely, instead, "")}
            columns |= {"margin": self.labels.margin}
        if self.read is not None:
            likely, instead = self.read.likely, names[self.read.instead]
            columns |= {"features_label_error": likely, "features_rather": np.where(likely, instead, "")}
            columns |= {"features_margin": self.read.margin}
        if self.near is not None:
            same = self.images.labels[self.near.indices.numpy()] == self.images.labels[:, None]
            columns |= {"neighbours": same.shape[1], "neighbours_of_label": same.sum(1)}
            columns |= {"distance": self.near.isolation, "distance_rank": self.near.rank}
        if isinstance(self.slices, ErrorSlices):
            columns |= {"slice": self.slices.number_members(len(self.images))}
        if self.places is not None:
            columns |= {"component_1": self.places[:, 0], "component_2": self.places[:, 1]}
        return pd.DataFrame(columns)


@dataclass(frozen=True)
class DebuggingQuery:
    """A network and an image set with its settings."""

    model: str
    image_set: str
    settings: Mapping[str, Any]


def debugging_files(
    query: DebuggingQuery, out: Path, progress: Progress
) -> tuple[DebuggingResults, tuple[Path, Path, Path]]:
    """Write ``MODEL.debugging.csv`` and ``.json``, and ``MODEL.slices.csv``, into ``out``."""
    classifier, images = open_classifier(query.model, Path.cwd()), set_named(query.image_set, query.settings)
    parts = out / "parts"  # other commands with this folder keep theirs there too
    cache = parts / "predictions"
    results = debug_classifier(classifier, images, cache, progress)
    slices = pd.DataFrame()
    if isinstance(results.slices, ErrorSlices):
        slices = tabulate_slices(results.slices, images, results.predictions, results.class_names)
    facts = facts_of(classifier, {"images": images.name, "digest": images.digest, "count": len(images)})
    rows = json.loads(slices.to_json(orient="records", double_precision=10))
    report = facts | {"slices": rows, "label_errors": len(results.find_label_errors())}
    shutil.rmtree(cache, ignore_errors=True)
    stem = classifier.file_name
    csv, told = table_files(out, f"{stem}.debugging", results.table(), report, parts)
    return results, (csv, told, write_whole(out / f"{stem}.slices.csv", csv_text(slices).encode()))


def debug_classifier(classifier: Classifier, images: ImageSet, cache: Path, progress: Progress) -> DebuggingResults:
    """Predict a set, labelled or not, and look for label errors and outliers; stored predictions are not made again."""
    readable = ends_linearly(classifier)
    predictions = predict(classifier, images, cache, progress, features=readable, labelled=False)
    labels = read = near = places = shares = None
    slices: ErrorSlices | str = "Error slices need a network that ends in one linear layer."
    if readable:
        p = (with_bias(predictions.features) @ classifier.head.T).softmax(1).numpy()
        with suppress(ForetellError):  # each names what the set lacks: then there is no such evidence
            labels = confident_learning(p, predictions.truth)
        slices = find_labelled_slices(predictions, p)
        with suppress(ForetellError):
            out_of_fold_p = read_out_of_fold(predictions, len(classifier.categories), progress)
            read = confident_learning(out_of_fold_p, predictions.truth)
        with suppress(ForetellError):
            near = nearest(predictions.features, progress=progress)
            places, shares = principal_plane(predictions.features)
        predictions = replace(predictions, features=predictions.features[:, :0], sketches=predictions.sketches[:, :0])
    return DebuggingResults(images, predictions, classifier.categories, labels, read, near, slices, places, shares)


def read_out_of_fold(predictions: Predictions, classes: int, progress: Progress) -> NDArray[np.float64]:
    """Compute the scores (N, classes) of linear probes, each trained without the image it scores; 0 without a label."""
    known = np.flatnonzero(predictions.truth != UNMATCHED)
    truth = torch.from_numpy(predictions.truth[known])
    names, _, p = out_of_fold(predictions.features[known], truth, folds=FOLDS, progress=progress)
    probabilities = np.zeros((len(predictions.truth), classes))
    probabilities[np.ix_(known, names)] = p
    return probabilities


def ends_linearly(classifier: Classifier) -> bool:
    """Tell whether the features of the last layer are available."""
    with suppress(ForetellError):
        return len(classifier.head) > 0
    return False


def label_evidence(results: DebuggingResults, i: int) -> list[str]:
    """Explain, line by line, why an image's label is likely to be wrong."""
    assert results.near is not None
    predictions, names = results.predictions, results.class_names
    own, other, predicted = int(predictions.truth[i]), _find_other_class(results, i), int(predictions.predicted[i])
    near = predictions.truth[results.near.indices[i].numpy()]
    confidence = f"{predictions.probability[i]:.0%}"
    is_predicted = other == predicted
    return [
        f"Label: {results.label_names[i]}. Suggested: {names[other]}{f' ({confidence})' if is_predicted else ''}",
        " ".join(
            [
                *([] if is_predicted else [f"Prediction: {names[predicted]} ({confidence})."]),
                *_read_evidence(results, i),
                f"Neighbours: {(near == own).sum()} of {len(near)} {names[own]}, {(near == other).sum()} "
                f"{names[other]}.",
            ]
        ),
    ]


def _find_other_class(results: DebuggingResults, i: int) -> int:
    """Name the other class suggested by the evidence against the label; the predictions' evidence comes first."""
    evidence = [one for one in (results.labels, results.read) if one is not None]
    return int(next(one for one in evidence if one.likely[i]).instead[i])


def _read_evidence(results: DebuggingResults, i: int) -> list[str]:
    if results.read is None:
        return []
    suggested = results.class_names[int(results.read.instead[i])]
    return [f"Linear probe: {suggested if results.read.likely[i] else results.label_names[i]}."]


def format_ordinal(number: int) -> str:
    """Format a number up to 20 as an ordinal."""
    return f"{number}{ORDINALS.get(number, 'th')}"


def outlier_evidence(results: DebuggingResults, i: int) -> list[str]:
    """Explain, line by line, why an image is an outlier."""
    assert results.near is not None
    away, near = results.near.isolation, results.near.indices[i].numpy()
    verdict = "" if not results.has_known_label[i] else ", right" if results.predictions.correct[i] else ", wrong"
    same = int((results.images.labels[near] == results.images.labels[i]).sum())
    return [
        f"rank {results.near.rank[i]:,} of {len(away):,}",
        f"Label: {results.label_names[i]}. Prediction: {results.class_names[results.predictions.predicted[i]]} "
        f"({results.predictions.probability[i]:.0%}){verdict}.",
        f"Distance to the {format_ordinal(len(near))} nearest: {away[i]:.2f} (median {np.median(away):.2f}). "
        f"Same label: {same} of {len(near)}.",
    ]
