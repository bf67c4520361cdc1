"""Uncertainty of a network about each image of a set, as a table; with labels, how well it predicts the errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.parameters import parse_parameters
from core.types import Progress, silent
from core.uncertainty import SAMPLERS, UNCERTAINTY_MEASURES
from core.uncertainty.measures import predictive_mean
from core.uncertainty.reliability import calibration, compare_detection, cross_fit_temperatures, error_detection
from inquiry.files.facts import facts_of, key_of
from inquiry.units.exemplars import ImageCollection, open_requested
from study.network.priors import StoredPrior, load_prior
from study.network.sources import class_of_labels, open_classifier
from study.workspace.blocks import Blocks, table_files

BLOCK = 64
"""Images predicted in one go: at most this many are lost when a run is killed."""
UNKNOWN = -1
"""True class of an unlabelled image."""
PLAIN, AVERAGED = "plain", "averaged"
"""The prediction without noise, and the mean of the predictions under noise."""


@dataclass(frozen=True)
class UncertaintyQuery:
    """A network, the images, and the sampler of predictions under noise.

    ``parameters`` are texts, checked against the sampler's declaration; ``images`` a folder or pattern, or else None
    and ``image_set`` a registered set with its ``settings``, whose labels are known. ``prior`` is a file of the command
    ``prior``, for samplers that draw from one.
    """

    model: str
    images: str | None = None
    image_set: str = "scenes"
    settings: Mapping[str, Any] = field(default_factory=dict)
    sampler: str = "mc_dropout"
    passes: int = 100
    parameters: Mapping[str, str] = field(default_factory=dict)
    prior: Path | None = None
    seed: int = 0


@dataclass(frozen=True)
class Uncertainty:
    """Results of an uncertainty query.

    Attributes
    ----------
    table
        One row an image: ``image, truth, predicted, correct, confidence`` (of the prediction without noise),
        ``averaged, averaged_correct`` (of the mean under noise), and each measure and its Monte Carlo ``_error``.
    report
        Settings and provenance; with true classes, accuracy, calibration and how well each measure finds the errors.
    """

    table: pd.DataFrame
    report: dict[str, Any]


def uncertainty_files(request: UncertaintyQuery, out: Path, progress: Progress = silent) -> tuple[Path, Path]:
    """Write ``<model>.<sampler>.csv`` and ``.json`` into ``out``; a killed run resumes with the same request."""
    classifier = open_classifier(request.model, Path.cwd())
    parts = out / "parts"
    images, labelled = open_requested(request.images, request.image_set, request.settings)
    truth = None if labelled is None else class_of_labels(labelled, classifier)
    results = uncertainty(classifier, request, images, truth, parts, progress)
    stem = f"{classifier.file_name}.{request.sampler}"
    return table_files(out, stem, results.table, results.report, parts)


def uncertainty(
    classifier: Classifier,
    request: UncertaintyQuery,
    images: ImageCollection,
    truth: np.ndarray | None = None,
    parts: Path | None = None,
    progress: Progress = silent,
) -> Uncertainty:
    """Compute every measure for every image; ``truth`` (N,) holds class indices, -1 if unknown.

    ``parts`` is a folder for finished blocks, from which a run that was killed resumes; it is left empty.

    Raises
    ------
    ForetellError
        An unknown sampler or parameter, or one that does not apply to the network.
    """
    sampler = SAMPLERS[request.sampler]
    given = parse_parameters(sampler, {**request.parameters, "passes": request.passes})
    stored = load_prior(request.prior, classifier) if request.prior else None
    if stored is not None and "prior" not in signature(sampler).parameters:
        raise ForetellError(f"{request.sampler} uses no prior: leave out --prior, or use laplace.")
    facts = _facts(classifier, request, given, images, stored)
    ask = partial(sampler, **given, **({} if stored is None else {"prior": stored.prior}))
    blocks = Blocks(parts, key_of(facts, images.ids), len(images), BLOCK)
    joined = blocks.join(
        partial(_predict_block, classifier, ask, request.seed, images), progress, "predicting under noise"
    )
    labels = np.full(len(images), UNKNOWN) if truth is None else np.asarray(truth)
    table = _table(classifier, images, labels, joined)
    report = dict(facts)
    known = labels != UNKNOWN
    if known.any():
        report["reliability"] = reliability({name: column[known] for name, column in joined.items()}, labels[known])
    blocks.forget()
    return Uncertainty(table, report)


def _predict_block(
    classifier: Classifier, ask: Callable[..., Tensor], seed: int, images: ImageCollection, rows: range
) -> dict[str, np.ndarray]:
    """Compute the columns of a block: `PLAIN` and `AVERAGED` (n, K), the measures and their errors (n,)."""
    inputs = torch.stack([classifier.preprocess(images.open(i)) for i in rows])
    predictions = ask(classifier, inputs, generator=torch.Generator().manual_seed(seed)).softmax(-1)
    columns = {PLAIN: classifier.probabilities(inputs), AVERAGED: predictive_mean(predictions)}
    for name, measure in UNCERTAINTY_MEASURES.items():
        estimate = measure(predictions)
        columns |= {name: estimate.value, f"{name}_error": estimate.error}
    return {name: column.numpy() for name, column in columns.items()}


def _table(
    classifier: Classifier, images: ImageCollection, labels: np.ndarray, columns: Mapping[str, np.ndarray]
) -> pd.DataFrame:
    names = np.array([*classifier.names.short, ""])  # the last name is for an unknown class
    predicted, averaged = columns[PLAIN].argmax(1), columns[AVERAGED].argmax(1)
    measured = {name: column for name, column in columns.items() if column.ndim == 1}
    return pd.DataFrame(
        {
            "image": images.ids,
            "truth": names[labels],
            "predicted": names[predicted],
            "correct": _right(predicted, labels),
            "confidence": columns[PLAIN].max(1),
            "averaged": names[averaged],
            "averaged_correct": _right(averaged, labels),
            **measured,
        }
    )


def _right(predicted: np.ndarray, labels: np.ndarray) -> pd.Series:
    return pd.Series(predicted == labels, dtype="boolean").mask(labels == UNKNOWN)


def _facts(
    classifier: Classifier,
    request: UncertaintyQuery,
    given: Mapping[str, Any],
    images: ImageCollection,
    stored: StoredPrior | None,
) -> dict[str, Any]:
    own = {
        "sampler": request.sampler,
        "parameters": dict(given),
        "prior": None if stored is None else stored.digest,
        "seed": request.seed,
        "images": images.name,
        "count": len(images),
    }
    return facts_of(classifier, own)


def reliability(columns: Mapping[str, np.ndarray], labels: np.ndarray) -> dict[str, Any]:
    """Compute accuracy and calibration with and without noise, and how well each measure detects errors.

    ``columns`` are predictions (N, K) as `PLAIN` and `AVERAGED` and each measure (N,); ``labels`` (N,) true classes.
    """
    plain_predictions, wrong = columns[PLAIN], columns[PLAIN].argmax(1) != labels
    report: dict[str, Any] = {"labelled": len(labels)}
    for name in (PLAIN, AVERAGED):
        known = calibration(columns[name], labels)
        right = float((columns[name].argmax(1) == labels).mean())
        report[name] = {"accuracy": right, "calibration_error": known.expected_error, "brier": known.brier}
    report["temperature"] = _evaluate_temperature_scaling(plain_predictions, labels)
    unsure = 1 - plain_predictions.max(1)
    try:
        report["detection"] = {"confidence": _detection(unsure, wrong)}
        for name in UNCERTAINTY_MEASURES:
            report["detection"][name] = _detection(columns[name], wrong) | _against(columns[name], unsure, wrong)
    except ForetellError as error:
        report["detection"] = str(error)
    return report


def _evaluate_temperature_scaling(predictions: np.ndarray, labels: np.ndarray) -> dict[str, Any] | str:
    """Fit a temperature to each half of the images, and compute the other half's calibration error under it."""
    try:
        best, cooled = cross_fit_temperatures(predictions, labels)
    except ForetellError as error:
        return str(error)
    return {"halves": list(best), "calibration_error": calibration(cooled, labels).expected_error}


def _detection(measure: np.ndarray, wrong: np.ndarray) -> dict[str, Any]:
    detection = error_detection(measure, wrong)
    return asdict(detection) | {"interval": list(detection.interval)}


def _against(measure: np.ndarray, unsure: np.ndarray, wrong: np.ndarray) -> dict[str, Any]:
    """Compare its detection of errors with that of the plain prediction's confidence, with 95 % limits."""
    difference, error = compare_detection(measure, unsure, wrong)
    return {"better_than_confidence": difference, "limits": [difference - 1.96 * error, difference + 1.96 * error]}
