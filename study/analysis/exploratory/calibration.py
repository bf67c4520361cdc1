"""Calibration of participants' confidence: does it match how often they are right?

Confidence is the probability they give their own response. The Brier score is its mean squared distance from being
right (0 is perfect, 1/4 is what saying "one half" earns); the expected calibration error is the mean distance between
confidence and accuracy over bins of equal width, weighted by responses (Naeini, Cooper & Hauskrecht, 2015).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.errors import ForetellError
from study import plots
from study.analysis.exploratory.analysis import ExploratoryAnalysis, with_figure
from study.analysis.responses import accuracies

BINS = 10
FEWEST = 5
"""Participants of a bin below which their spread says nothing."""


def bins(frame: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Tabulate condition, participants, `responses`, confidence (mean in the bin), accuracy, low and high.

    Responses of one participant go together, so intervals are over participants
    (`study.analysis.responses.accuracies`). A bin of fewer than `FEWEST` participants has no interval.

    Raises
    ------
    ForetellError
        There is no column ``confidence``, or nothing in it.
    """
    rated = select_rated(frame)
    rows = []
    for name in accuracies.order(rated):
        part = rated[rated["condition"] == name]
        right, responses = (counts.to_numpy() for counts in accuracies.count_by_participant(part, "bin"))
        share, low, high = accuracies.compute_intervals(right, responses, level)
        sure = part.groupby("bin")["confidence"].mean()
        for k, middle in enumerate(sure):
            given, people = int(responses[:, k].sum()), int((responses[:, k] > 0).sum())
            limits = (float(low[k]), float(high[k])) if people >= FEWEST else (np.nan, np.nan)
            rows.append((name, people, given, float(middle), float(share[k]), *limits))
    return pd.DataFrame(
        rows, columns=["condition", "participants", "responses", "confidence", "accuracy", "low", "high"]
    )


def scores(frame: pd.DataFrame) -> pd.DataFrame:
    """Tabulate condition, `responses`, brier, calibration_error, confidence, accuracy, overconfidence (difference)."""
    rated, rows = select_rated(frame), []
    for name in accuracies.order(rated):
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


def select_rated(frame: pd.DataFrame) -> pd.DataFrame:
    """Select the responses with a confidence, with their `bin`; raises `ForetellError` where there are none."""
    rated = frame[frame["confidence"].notna()] if "confidence" in frame else frame.head(0)
    if rated.empty:
        raise ForetellError("The responses have no confidence ratings: name a column of probabilities 'confidence'.")
    return rated.assign(bin=np.minimum((rated["confidence"] * BINS).astype(int), BINS - 1))


ANALYSIS = ExploratoryAnalysis(
    "Calibration of confidence",
    "On the dotted line, accuracy equals confidence; 95% intervals over participants.",
    lambda study: with_figure(bins(study.frame), figure),
)
SCORES = ExploratoryAnalysis(
    "Calibration of confidence: scores",
    "Brier score: mean squared difference between confidence and correctness, 0 is best. Calibration error: mean "
    "distance of accuracy from confidence over the bins. Overconfidence: mean confidence minus accuracy.",
    lambda study: (scores(study.frame), None),
    lambda study: "confidence" in study.frame,
)
