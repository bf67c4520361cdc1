"""Calibration of probabilities, and error detection by measures of uncertainty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from scipy.stats import rankdata

from core.errors import ForetellError

Floats = NDArray[np.float64]
COLDEST, HOTTEST = 0.01, 100.0
"""Temperatures tried."""
HALVES = (slice(0, None, 2), slice(1, None, 2))
"""The even and the odd images: of a set in the order of its categories, each half has all of them."""


@dataclass(frozen=True)
class Calibration:
    """Accuracy of the classifier by its confidence.

    Attributes
    ----------
    edges
        (bins + 1,) edges of confidence.
    confidence, accuracy
        (bins,) means of the predictions in each bin; NaN where there is none.
    count
        (bins,) predictions in each bin.
    expected_error
        Sum over the bins of their share times the distance of accuracy and confidence (Guo et al. 2017,
        arXiv:1706.04599, equation 5). It is above 0 even for a perfect classifier when predictions are few.
    brier
        Mean over the predictions of the sum over the classes of (p - truth)^2: 0 is best, 2 worst.
    """

    edges: Floats
    confidence: Floats
    accuracy: Floats
    count: NDArray[np.int64]
    expected_error: float
    brier: float


def calibration(probabilities: ArrayLike, labels: ArrayLike, bins: int = 15) -> Calibration:
    """Measure the calibration of predictions (N, K) for images whose true classes are ``labels`` (N,), in even bins."""
    p, y = _predictions(probabilities, labels)
    confidence, right = p.max(1), p.argmax(1) == y
    edges = np.linspace(0, 1, bins + 1)
    place = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    count = np.bincount(place, minlength=bins)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(place, confidence, bins) / count
        accuracy = np.bincount(place, right, bins) / count
    gap = np.nansum(np.abs(accuracy - mean) * count) / len(y)
    brier = float(np.square(p - np.eye(p.shape[1])[y]).sum(1).mean())
    return Calibration(edges, mean, accuracy, count, float(gap), brier)


def best_temperature(logits: ArrayLike, labels: ArrayLike) -> float:
    """Return the T > 0 whose softmax(logits / T) is the likeliest for ``labels`` (Guo et al. 2017, section 4.2).

    Fit it on images other than those it will be judged on. It changes no predicted class, only the confidence.

    Raises
    ------
    ForetellError
        All predictions are right (or none is), so that no temperature is the best.
    """
    z, y = np.asarray(logits, np.float64), np.asarray(labels, np.int64)
    # In 1/T the likelihood of a softmax is concave, so that there is one best value.
    optimum = minimize_scalar(
        lambda scale: float(-log_softmax(z * scale, axis=1)[np.arange(len(y)), y].mean()),
        bounds=(1 / HOTTEST, 1 / COLDEST),
        method="bounded",
        options={"xatol": 1e-6},
    )
    temperature = 1 / float(optimum.x)
    if not 1.001 * COLDEST < temperature < 0.999 * HOTTEST:
        raise ForetellError(
            "No temperature is the best for these images: the classifier is right on all of them or on hardly any. "
            "Give images on which it is sometimes wrong."
        )
    return temperature


def cross_fit_temperatures(probabilities: ArrayLike, labels: ArrayLike) -> tuple[tuple[float, float], Floats]:
    """Fit temperatures of the even and the odd images, and predict (N, K) with the other half's.

    A temperature that is judged on the images it was fitted on flatters itself.

    Raises
    ------
    ForetellError
        A half has no best temperature.
    """
    p, y = _predictions(probabilities, labels)
    given = np.asarray(probabilities).dtype
    # What is 0 was too small for its precision: float32's smallest is likelier than float64's, e^-708.
    logits = np.log(np.maximum(p, np.finfo(given if given.kind == "f" else np.float64).tiny))
    try:
        even, odd = (best_temperature(logits[half], y[half]) for half in HALVES)
    except ForetellError as error:
        raise ForetellError(f"A temperature is fitted on each half of the images, and one has none. {error}") from None
    cooled = np.empty_like(logits)
    for half, other in zip(HALVES, (odd, even), strict=True):
        cooled[half] = softmax(logits[half] / other, axis=1)
    return (even, odd), cooled


@dataclass(frozen=True)
class Detection:
    """Separation of errors from correct predictions by a measure.

    ``area`` under the ROC curve is the chance that of one error and one correct prediction the error is more uncertain:
    .5 is chance, 1 perfect. ``error`` is its standard error (DeLong et al. 1988).
    """

    area: float
    error: float
    wrong: int
    right: int

    @property
    def interval(self) -> tuple[float, float]:
        """95% confidence interval."""
        return max(0.0, self.area - 1.96 * self.error), min(1.0, self.area + 1.96 * self.error)


def error_detection(uncertainty: ArrayLike, wrong: ArrayLike) -> Detection:
    """Measure how well a measure (N,), large where the classifier is uncertain, detects errors ``wrong`` (N,) bool.

    Raises
    ------
    ForetellError
        Fewer than two errors or two correct predictions.
    """
    u, is_wrong = np.asarray(uncertainty, np.float64), np.asarray(wrong, bool)
    errors, others = _placements(u, is_wrong)
    area = float(errors.mean())
    variance = errors.var(ddof=1) / len(errors) + others.var(ddof=1) / len(others)
    return Detection(area, float(np.sqrt(variance)), len(errors), len(others))


def detection_by_halves(uncertainty: ArrayLike, wrong: ArrayLike) -> Detection:
    """Average `error_detection` over the `HALVES`: for a measure that differs between them.

    Raises
    ------
    ForetellError
        A half has fewer than two errors or two correct predictions.
    """
    u, is_wrong = np.asarray(uncertainty, np.float64), np.asarray(wrong, bool)
    try:
        even, odd = (error_detection(u[half], is_wrong[half]) for half in HALVES)
    except ForetellError as error:
        raise ForetellError(f"Errors are detected within each half of the images. In one: {error}") from None
    spread = float(np.hypot(even.error, odd.error)) / 2
    return Detection((even.area + odd.area) / 2, spread, even.wrong + odd.wrong, even.right + odd.right)


def compare_detection(first: ArrayLike, second: ArrayLike, wrong: ArrayLike) -> tuple[float, float]:
    """Return the difference of two measures' areas on the same images, and its standard error (DeLong et al. 1988)."""
    is_wrong = np.asarray(wrong, bool)
    placed = [_placements(np.asarray(u, np.float64), is_wrong) for u in (first, second)]
    errors, others = (placed[0][k] - placed[1][k] for k in (0, 1))
    variance = errors.var(ddof=1) / len(errors) + others.var(ddof=1) / len(others)
    return float(errors.mean()), float(np.sqrt(variance))


def _placements(u: Floats, wrong: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Compute each error's share of more certain correct predictions, and the converse for correct predictions."""
    n, m = int(wrong.sum()), int((~wrong).sum())
    if min(n, m) < 2:
        raise ForetellError(
            f"There are {n} errors and {m} correct predictions: error detection needs two of each. Give more images."
        )
    ranks = rankdata(u)
    errors = (ranks[wrong] - rankdata(u[wrong])) / m
    others = (ranks[~wrong] - rankdata(u[~wrong])) / n
    return errors, others


def _predictions(probabilities: ArrayLike, labels: ArrayLike) -> tuple[Floats, NDArray[np.int64]]:
    p, y = np.asarray(probabilities, np.float64), np.asarray(labels, np.int64)
    if p.ndim != 2 or len(p) != len(y) or not len(p):
        raise ForetellError(f"Predictions {p.shape} and labels {y.shape} do not match: give (N, K) and (N,).")
    return p, y
