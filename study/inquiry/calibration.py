"""Can the confidence of a network's answers to a set be believed: as they are, and after one temperature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.classifier import Classifier
from core.errors import ForetellError
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
from study.inquiry.debugging import ends_linearly
from study.network.predictions import probabilities_of
from study.network.sources import UNMATCHED, class_of_labels

Made = TypeVar("Made")
LEAST = 2
"""Pictures whose labels the network knows."""
GIVEN, COOLED = "as it answers", "after a temperature"


class Gap(NamedTuple):
    """Mean confidence less accuracy, and the limits of its 95 % interval: the images' own differences, normal."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ConfidenceCalibration:
    """Answers with their calibration; ``detection`` of errors by plain confidence is None where it cannot be had.

    Of cooled answers it is that within the halves, averaged.
    """

    calibration: Calibration
    confidence: float
    gap: Gap
    detection: Detection | None


@dataclass(frozen=True)
class CalibrationResults:
    """What the labels of ``count`` pictures say of the network's confidence.

    Attributes
    ----------
    accuracy
        With its 95 % interval (Wilson); no temperature changes it.
    given, cooled
        The answers as they are, and each half of them under the temperature that is the best of the other half; None
        where a half has none.
    temperatures
        Those of the two halves.
    lacking
        Sentences that say what could not be had, and why.
    """

    count: int
    accuracy: Share
    given: ConfidenceCalibration
    cooled: ConfidenceCalibration | None
    temperatures: tuple[float, float] | None
    lacking: tuple[str, ...]

    @property
    def predictions(self) -> dict[str, ConfidenceCalibration]:
        """What there is, by name: `GIVEN` and `COOLED`."""
        return {GIVEN: self.given} | ({} if self.cooled is None else {COOLED: self.cooled})

    def bins(self) -> pd.DataFrame:
        """One row for each bin of confidence in which there are answers: how many of these are right, with limits."""
        return pd.DataFrame([row for name, one in self.predictions.items() for row in _bins(name, one.calibration)])

    def measures(self) -> pd.DataFrame:
        """One row for each measure of the answers, with its 95 % interval where it has one."""
        rows = [
            {"answers": name, "measure": measure, "value": value, "low": low, "high": high}
            for name, one in self.predictions.items()
            for measure, value, low, high in self._measure_predictions(one)
        ]
        for half, temperature in zip(("even", "odd"), self.temperatures or (), strict=False):
            rows.append({"answers": COOLED, "measure": f"temperature of the {half} pictures", "value": temperature})
        return pd.DataFrame(rows)

    def _measure_predictions(self, one: ConfidenceCalibration) -> list[tuple[str, float, float, float]]:
        nan = float("nan")
        rows = [
            ("accuracy", *self.accuracy),
            ("mean confidence", one.confidence, nan, nan),
            ("confidence less accuracy", *one.gap),
            ("expected calibration error", one.calibration.expected_error, nan, nan),
            ("Brier score", one.calibration.brier, nan, nan),
        ]
        found = one.detection
        if found is None:
            return rows
        # Where all errors are less sure than all right answers DeLong's error is 0, which is no certainty.
        return [*rows, ("AUROC of confidence for errors", found.area, *(found.interval if found.error else (nan, nan)))]


def assess_calibration(classifier: Classifier, images: ImageSet, cache: Path, progress: Progress) -> CalibrationResults:
    """Of the answers that `study.inquiry.debugging.debug_classifier` keeps in ``cache``, or that are asked for now.

    Raises
    ------
    ForetellError
        Fewer than `LEAST` pictures bear a label that the network knows.
    """
    answers = probabilities_of(classifier, images, cache, progress, features=ends_linearly(classifier))
    truth = class_of_labels(images, classifier, refuse=False)
    known = truth != UNMATCHED
    return assess_predictions(answers[known], truth[known])


def assess_predictions(probabilities: NDArray[np.float32], labels: NDArray[np.int64]) -> CalibrationResults:
    """Of answers (N, K) to images whose true classes are ``labels`` (N,).

    Raises
    ------
    ForetellError
        Fewer than `LEAST`.
    """
    if len(labels) < LEAST:
        raise ForetellError(too_few(len(labels)))
    right = probabilities.argmax(1) == labels
    accuracy = share_of(int(right.sum()), len(right))
    one_sided = _one_sided(right)
    if one_sided:
        return CalibrationResults(
            len(right), accuracy, _describe_confidence(probabilities, labels, None), None, None, (one_sided,)
        )
    lacking: list[str] = []
    found = _try_measure(lambda: error_detection(_unsure(probabilities), ~right), lacking)
    given = _describe_confidence(probabilities, labels, found)
    fitted = _try_measure(lambda: cross_fit_temperatures(probabilities, labels), lacking)
    if fitted is None:
        return CalibrationResults(len(right), accuracy, given, None, None, tuple(lacking))
    temperatures, answers = fitted
    # Each half has a temperature of its own: across them the answers' confidence has no common order.
    found = _try_measure(lambda: detection_by_halves(_unsure(answers), ~right), lacking)
    return CalibrationResults(
        len(right), accuracy, given, _describe_confidence(answers, labels, found), temperatures, tuple(lacking)
    )


def _try_measure(make: Callable[[], Made], lacking: list[str]) -> Made | None:
    """What can be made, or else why not among what is ``lacking``."""
    try:
        return make()
    except ForetellError as error:
        lacking.append(str(error))
        return None


def too_few(count: int) -> str:
    """Why the labels of so many images say nothing."""
    return (
        f"Calibration is judged on {LEAST} or more pictures whose labels the AI knows, and here are {count}: name the "
        "folders as the classifier names its classes."
    )


def _one_sided(right: NDArray[np.bool_]) -> str:
    """One sentence where all answers are right, or all wrong."""
    if right.all():
        return (
            f"The AI is right about all {len(right):,} images: no temperature is the best for them, and there are no "
            "errors to detect. Choose images on which it is sometimes wrong."
        )
    if not right.any():
        return (
            f"The AI is wrong about all {len(right):,} images: no temperature is the best for them, and there are no "
            "correct predictions to compare with. Choose images on which it is sometimes right."
        )
    return ""


def _unsure(answers: NDArray[np.floating]) -> NDArray[np.float64]:
    unsure: NDArray[np.float64] = 1 - answers.max(1).astype(np.float64)
    return unsure


def _describe_confidence(
    answers: NDArray[np.floating], labels: NDArray[np.int64], detection: Detection | None
) -> ConfidenceCalibration:
    sure = answers.max(1).astype(np.float64)
    return ConfidenceCalibration(
        calibration(answers, labels), float(sure.mean()), _gap(sure - (answers.argmax(1) == labels)), detection
    )


def _gap(differences: NDArray[np.float64]) -> Gap:
    value, error = float(differences.mean()), float(differences.std(ddof=1)) / len(differences) ** 0.5
    return Gap(value, value - 1.96 * error, value + 1.96 * error)


def _bins(name: str, found: Calibration) -> list[dict[str, object]]:
    rows = []
    for k in np.flatnonzero(found.count):
        count = int(found.count[k])
        share = share_of(round(float(found.accuracy[k]) * count), count)
        edges = {"from": found.edges[k], "to": found.edges[k + 1], "pictures": count}
        told = {"confidence": found.confidence[k], "accuracy": share.value, "low": share.low, "high": share.high}
        rows.append({"answers": name, **edges, **told})
    return rows
