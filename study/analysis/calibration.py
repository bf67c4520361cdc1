"""Calibration of participants' confidence: does it match how often they are right?

Confidence is the probability they give their own response. The Brier score is its mean squared distance from being
right (0 is perfect, 1/4 is what saying "one half" earns); the expected calibration error is the mean distance between
confidence and accuracy over bins of equal width, weighted by responses (Naeini, Cooper & Hauskrecht, 2015).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray
from statsmodels.stats.proportion import proportion_confint

from core.errors import ForetellError
from study.analysis import bootstrap, plots
from study.analysis.exploratory import ExploratoryAnalysis, with_figure

BINS = 10
FEWEST = 5
"""Participants of a bin below which resampling them says nothing."""
RESAMPLES = 2000


def bins(
    frame: pd.DataFrame, *, rng: np.random.Generator, resamples: int = RESAMPLES, level: float = 0.95
) -> pd.DataFrame:
    """Tabulate condition, participants, `responses`, confidence (mean in the bin), accuracy, low and high (resampled).

    Responses of one participant go together, so participants are resampled (`study.analysis.bootstrap`). Where all
    responses in a bin are right, or all wrong, resampling has nothing to vary: the interval is then Wilson's with each
    participant counted once. A bin of fewer than `FEWEST` participants has no interval.

    Raises
    ------
    ForetellError
        There is no column ``confidence``, or nothing in it.
    """
    rated = _select_rated(frame)
    rows = []
    for name in bootstrap.order(rated):
        part = rated[rated["condition"] == name]
        by_person = part.groupby(["participant", "bin"])["correct"].agg(["sum", "count"]).unstack("bin", fill_value=0)
        right, responses = (by_person[what].to_numpy(dtype=np.float64) for what in ("sum", "count"))
        draws = bootstrap.resample(right, responses, resamples, rng)
        sure = part.groupby("bin")["confidence"].mean()
        for k, middle in enumerate(sure):
            given, people = int(responses[:, k].sum()), int((responses[:, k] > 0).sum())
            accuracy = float(right[:, k].sum() / given)
            low, high = _interval(draws[:, k], accuracy, people, level)
            rows.append((name, people, given, float(middle), accuracy, low, high))
    return pd.DataFrame(
        rows, columns=["condition", "participants", "responses", "confidence", "accuracy", "low", "high"]
    )


def _interval(draws: NDArray[np.float64], accuracy: float, people: int, level: float) -> tuple[float, float]:
    if people < FEWEST:
        return np.nan, np.nan
    if accuracy in (0.0, 1.0):
        low, high = proportion_confint(people * accuracy, people, alpha=1 - level, method="wilson")
        return float(low), float(high)
    low, high = np.nanquantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def scores(frame: pd.DataFrame) -> pd.DataFrame:
    """Tabulate condition, `responses`, brier, calibration_error, confidence, accuracy, overconfidence (difference)."""
    rated, rows = _select_rated(frame), []
    for name in bootstrap.order(rated):
        part = rated[rated["condition"] == name]
        by_bin = part.groupby("bin").agg(n=("correct", "size"), right=("correct", "mean"), sure=("confidence", "mean"))
        rows.append(
            {
                "condition": name,
                "responses": len(part),
                "brier": float(np.mean((part["confidence"] - part["correct"]) ** 2)),
                "calibration_error": float(np.average(abs(by_bin["right"] - by_bin["sure"]), weights=by_bin["n"])),
                "confidence": float(part["confidence"].mean()),
                "accuracy": float(part["correct"].mean()),
                "overconfidence": float(part["confidence"].mean() - part["correct"].mean()),
            }
        )
    return pd.DataFrame(rows)


def figure(table: pd.DataFrame) -> go.Figure:
    """Plot accuracy by confidence, from `bins`; on the dotted line, accuracy equals confidence."""
    drawn = plots.curves(
        table, x="confidence", y="accuracy", by="condition", title="Correct responses", x_title="Confidence"
    )
    return plots.diagonal(drawn)


def _select_rated(frame: pd.DataFrame) -> pd.DataFrame:
    rated = frame[frame["confidence"].notna()] if "confidence" in frame else frame.head(0)
    if rated.empty:
        raise ForetellError("The responses have no confidence ratings: name a column of probabilities 'confidence'.")
    return rated.assign(bin=np.minimum((rated["confidence"] * BINS).astype(int), BINS - 1))


ANALYSIS = ExploratoryAnalysis(
    "Calibration of confidence",
    "On the dotted line, accuracy equals confidence; 95% intervals, participants resampled.",
    lambda study: with_figure(bins(study.frame, rng=study.rng), figure),
)
