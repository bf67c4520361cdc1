"""Calibration of a network's confidence on a labelled set, before and after temperature scaling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.shares import Share, share_of
from core.types import Progress
from core.uncertainty.reliability import (
    Calibration,
    Detection,
    calibration,
    cross_fit_temperatures,
    detection_by_halves,
    error_detection,
)
from data.types import ImageSet
from inquiry.debugging.debugging import ends_linearly
from study.network.predictions import probabilities_of
from study.network.sources import UNMATCHED, class_of_labels

Made = TypeVar("Made")
LEAST = 2
"""Fewest images whose labels are classes of the network."""
GIVEN, COOLED = "unscaled", "temperature-scaled"


class Gap(NamedTuple):
    """Mean confidence minus accuracy, with a 95 % interval: a normal one, from the differences of the single images."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ConfidenceCalibration:
    """Calibration of predictions; ``detection`` of errors by their confidence is None if it cannot be estimated.

    For temperature-scaled predictions, detection is computed within each half and averaged.
    """

    calibration: Calibration
    confidence: float
    gap: Gap
    detection: Detection | None


@dataclass(frozen=True)
class CalibrationResults:
    """Calibration of the network's confidence on ``count`` labelled images.

    Attributes
    ----------
    accuracy
        With its 95 % interval (Wilson); no temperature changes it.
    given, cooled
        Unscaled predictions, and each half of them under the temperature fitted to the other half; None if a half
        has no best temperature.
    temperatures
        Temperatures of the two halves.
    lacking
        One sentence for each result that could not be computed, with the reason.
    """

    count: int
    accuracy: Share
    given: ConfidenceCalibration
    cooled: ConfidenceCalibration | None
    temperatures: tuple[float, float] | None
    lacking: tuple[str, ...]

    @property
    def predictions(self) -> dict[str, ConfidenceCalibration]:
        """The predictions by name, `GIVEN` and `COOLED`."""
        return {GIVEN: self.given} | ({} if self.cooled is None else {COOLED: self.cooled})

    def bins(self) -> pd.DataFrame:
        """Tabulate the accuracy, with its limits, in each bin of confidence that has predictions."""
        return pd.DataFrame([row for name, one in self.predictions.items() for row in _bin(name, one.calibration)])

    def measures(self) -> pd.DataFrame:
        """Tabulate each measure of the predictions, with its 95 % interval if it has one."""
        rows = [
            {"predictions": name, "measure": measure, "value": value, "low": low, "high": high}
            for name, one in self.predictions.items()
            for measure, value, low, high in self._measure_predictions(one)
        ]
        for half, temperature in zip(("even", "odd"), self.temperatures or (), strict=False):
            rows.append({"predictions": COOLED, "measure": f"temperature of the {half} images", "value": temperature})
        return pd.DataFrame(rows)

    def _measure_predictions(self, one: ConfidenceCalibration) -> list[tuple[str, float, float, float]]:
        nan = float("nan")
        rows = [
            ("accuracy", *self.accuracy),
            ("mean confidence", one.confidence, nan, nan),
            ("confidence minus accuracy", *one.gap),
            ("expected calibration error", one.calibration.expected_error, nan, nan),
            ("Brier score", one.calibration.brier, nan, nan),
        ]
        detection = one.detection
        if detection is None:
            return rows
        # If every error has less confidence than every correct prediction, DeLong's error is 0: no interval.
        return [
            *rows,
            (
                "AUROC of confidence for errors",
                detection.area,
                *(detection.interval if detection.error else (nan, nan)),
            ),
        ]


def assess_calibration(classifier: Classifier, images: ImageSet, cache: Path, progress: Progress) -> CalibrationResults:
    """Assess the predictions that `inquiry.debugging.debugging` stored in ``cache``, or make them now.

    Raises
    ------
    ForetellError
        Fewer than `LEAST` images have a label that is a class of the network.
    """
    predictions = probabilities_of(classifier, images, cache, progress, features=ends_linearly(classifier))
    truth = class_of_labels(images, classifier, refuse=False)
    known = truth != UNMATCHED
    return assess_predictions(predictions[known], truth[known])


def assess_predictions(probabilities: NDArray[np.float32], labels: NDArray[np.int64]) -> CalibrationResults:
    """Assess predictions (N, K) for images whose true classes are ``labels`` (N,).

    Raises
    ------
    ForetellError
        Fewer than `LEAST` images.
    """
    if len(labels) < LEAST:
        raise ForetellError(explain_few(len(labels)))
    right = probabilities.argmax(1) == labels
    accuracy = share_of(int(right.sum()), len(right))
    one_sided = _explain_one_sided(right)
    if one_sided:
        return CalibrationResults(
            len(right), accuracy, _describe_confidence(probabilities, labels, None), None, None, (one_sided,)
        )
    lacking: list[str] = []
    detection = _try_measure(lambda: error_detection(_compute_uncertainty(probabilities), ~right), lacking)
    given = _describe_confidence(probabilities, labels, detection)
    fitted = _try_measure(lambda: cross_fit_temperatures(probabilities, labels), lacking)
    if fitted is None:
        return CalibrationResults(len(right), accuracy, given, None, None, tuple(lacking))
    temperatures, cooled = fitted
    # Each half has its own temperature, so confidence cannot be ranked across halves.
    detection = _try_measure(lambda: detection_by_halves(_compute_uncertainty(cooled), ~right), lacking)
    return CalibrationResults(
        len(right), accuracy, given, _describe_confidence(cooled, labels, detection), temperatures, tuple(lacking)
    )


def _try_measure(make: Callable[[], Made], lacking: list[str]) -> Made | None:
    """Return a result, or None after adding the reason to ``lacking``."""
    try:
        return make()
    except ForetellError as error:
        lacking.append(str(error))
        return None


def explain_few(count: int) -> str:
    """Explain why so few labelled images say nothing about calibration."""
    return (
        f"Calibration needs at least {LEAST} images whose labels are classes of the AI; there are {count}. Name the "
        "folders as the classifier names its classes."
    )


def _explain_one_sided(right: NDArray[np.bool_]) -> str:
    """Explain why there is nothing to compare if all predictions are correct, or all wrong."""
    if right.all():
        return (
            f"The AI is right about all {len(right):,} images: no temperature fits them best, and there are no "
            "errors to detect. Choose images on which it is sometimes wrong."
        )
    if not right.any():
        return (
            f"The AI is wrong about all {len(right):,} images: no temperature fits them best, and there are no "
            "correct predictions to compare with. Choose images on which it is sometimes right."
        )
    return ""


def _compute_uncertainty(probabilities: NDArray[np.floating]) -> NDArray[np.float64]:
    unsure: NDArray[np.float64] = 1 - probabilities.max(1).astype(np.float64)
    return unsure


def _describe_confidence(
    predicted: NDArray[np.floating], labels: NDArray[np.int64], detection: Detection | None
) -> ConfidenceCalibration:
    sure = predicted.max(1).astype(np.float64)
    return ConfidenceCalibration(
        calibration(predicted, labels),
        float(sure.mean()),
        _gap(sure - (predicted.argmax(1) == labels)),
        detection,
    )


def _gap(differences: NDArray[np.float64]) -> Gap:
    value, error = float(differences.mean()), float(differences.std(ddof=1)) / len(differences) ** 0.5
    return Gap(value, value - 1.96 * error, value + 1.96 * error)


def _bin(name: str, scores: Calibration) -> list[dict[str, object]]:
    rows = []
    for k in np.flatnonzero(scores.count):
        count = int(scores.count[k])
        share = share_of(round(float(scores.accuracy[k]) * count), count)
        edges = {"from": scores.edges[k], "to": scores.edges[k + 1], "images": count}
        told = {"confidence": scores.confidence[k], "accuracy": share.value, "low": share.low, "high": share.high}
        rows.append({"predictions": name, **edges, **told})
    return rows
