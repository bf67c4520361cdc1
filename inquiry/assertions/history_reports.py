"""Assertions over a history: their severity for every window of a stream, and a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from statsmodels.stats.proportion import proportion_confint

from core.errors import ForetellError
from core.shares import share_of
from core.types import Progress
from inquiry.assertions.history import History
from inquiry.assertions.rules import RuleProcess
from inquiry.assertions.streams import Streams

WHAT = "checking histories"


@dataclass(frozen=True)
class StreamPredictions:
    """The predictions for the images of streams.

    Attributes
    ----------
    ids, predicted, labels
        Of each image of the set: its name, the predicted class, and its label, empty where it has none.
    probabilities
        (N,) of the predicted class.
    categories
        Plain names of the network's classes.
    """

    streams: Streams
    ids: Sequence[str]
    predicted: Sequence[str]
    probabilities: NDArray[np.float32]
    labels: Sequence[str]
    categories: tuple[str, ...]

    def make_history(self, rows: Sequence[int]) -> History:
        """Wrap the predictions for a window of images, as the rules receive them."""
        return History(
            tuple(self.ids[row] for row in rows),
            tuple(self.predicted[row] for row in rows),
            tuple(float(self.probabilities[row]) for row in rows),
            tuple(self.labels[row] or None for row in rows),
            self.categories,
        )

    def find_errors(self, windows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return for windows (m, n) 1 if a prediction is an error, 0 if none is, NaN if a label is no class."""
        known = np.isin(self.labels, self.categories)
        errors = (np.asarray(self.labels) != np.asarray(self.predicted))[windows].any(1)
        return np.where(known[windows].all(1), errors, np.nan)


def refuse_short_streams(windows: dict[str, int], streams: Streams, file: str) -> None:
    """Refuse an assertion whose history is longer than every stream."""
    for name, n in windows.items():
        if n > streams.longest:
            raise ForetellError(
                f"{file}:{name} is about {n} images in a row, and the longest stream has {streams.longest}: give more "
                "images, or a smaller n."
            )


def check_histories(
    rules: RuleProcess, given: StreamPredictions, file: str, limit: float, progress: Progress
) -> dict[str, NDArray[np.float64]]:
    """Check every assertion over a history on every window: the severity (N,) by the image that ends the window.

    NaN where fewer than n images have come, or the assertion does not apply; ``limit`` is in seconds for a window.

    Raises
    ------
    ForetellError
        An assertion fails, does not end, returns anything but True, False, None or a number >= 0, or always None.
    """
    severities = {}
    for name, n in rules.windows.items():
        windows = given.streams.list_windows(n)
        values = np.full(len(given.ids), np.nan)
        for done, rows in enumerate(windows.tolist()):
            progress(done, len(windows), WHAT)
            values[rows[-1]] = rules.severity_of_history(name, given.make_history(rows), limit)
        if np.isnan(values).all():
            raise ForetellError(
                f"{file}:{name} returns None for all {len(windows)} windows of {n} images: return True or False, or "
                "choose images to which it applies."
            )
        severities[name] = values
    return severities


def report_history(says: str, n: int, severities: NDArray[np.float64], given: StreamPredictions) -> dict[str, Any]:
    """Report how often an assertion over n images is broken, where, and whether these windows hold errors.

    Overlapping windows are not independent, so an interval based on their number would be too narrow. The windows
    form n sets in which none overlap, and the mean over all windows varies no more than the mean of one set: ``low,
    high`` is Wilson's 95% interval for the size of one set, ``disjoint``. ``violations`` lists the broken windows,
    each without an image of one listed before. ``precision`` is the share of these that contain an error,
    ``elsewhere`` the same share among windows, again without a shared image, in which the assertion holds; both are
    None without labels. Intervals treat these windows as a random sample.
    """
    windows = given.streams.list_windows(n)
    severity, errors = severities[windows[:, -1]], given.find_errors(windows)
    applied, broken = ~np.isnan(severity), severity > 0
    listed = given.streams.select_disjoint(windows, broken)
    holding = given.streams.select_disjoint(windows, severity == 0)
    return {
        "says": says,
        "window": n,
        **_measure_share(int(broken.sum()), int(applied.sum()), len(given.streams.select_disjoint(windows, applied))),
        "violations": [_describe(given, windows[i].tolist(), severity[i], errors[i]) for i in listed],
        "precision": _share_errors(errors[listed]),
        "elsewhere": _share_errors(errors[holding]),
    }


def _measure_share(broken: int, applied: int, disjoint: int) -> dict[str, Any]:
    share = broken / applied
    low, high = proportion_confint(share * disjoint, disjoint, method="wilson")
    counts = {"applied": applied, "broken": broken, "disjoint": disjoint}
    return counts | {"share": share, "low": float(low), "high": float(high)}


def _describe(given: StreamPredictions, rows: list[int], severity: float, error: float) -> dict[str, Any]:
    history = given.make_history(rows)
    return {
        "images": list(history.ids),
        "predicted": list(history.predicted),
        "severity": float(severity),
        "error": None if np.isnan(error) else bool(error),
    }


def _share_errors(errors: NDArray[np.float64]) -> dict[str, Any] | None:
    judged = errors[~np.isnan(errors)]
    if not len(judged):
        return None
    share, low, high = share_of(int(judged.sum()), len(judged))
    return {"windows": len(judged), "errors": int(judged.sum()), "share": share, "low": low, "high": high}
