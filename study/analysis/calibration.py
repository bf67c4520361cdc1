"""Does a person's confidence tell how often she is right?

Confidence is the probability she gives her own answer. The Brier score is its mean squared distance from being right
(0 is perfect, 1/4 is what saying "one half" earns); the expected calibration error is the mean distance between
confidence and accuracy over bins of equal width, weighted by answers (Naeini, Cooper & Hauskrecht, 2015).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from statsmodels.stats.proportion import proportion_confint

from core.errors import ForetellError
from study.analysis import bootstrap, plots

BINS = 10


def bins(frame: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """condition, answers, confidence (mean in the bin), accuracy, low, high (Wilson's interval).

    Raises
    ------
    ForetellError
        There is no column ``confidence``, or nothing in it.
    """
    rated = _rated(frame)
    grouped = rated.groupby(["condition", "bin"], observed=True, sort=False)
    made = grouped.agg(answers=("correct", "size"), right=("correct", "sum"), confidence=("confidence", "mean"))
    made = made.reset_index().sort_values(["condition", "bin"], ignore_index=True)
    low, high = proportion_confint(made["right"], made["answers"], alpha=1 - level, method="wilson")
    made = made.assign(accuracy=made["right"] / made["answers"], low=low, high=high)
    return made[["condition", "answers", "confidence", "accuracy", "low", "high"]]


def scores(frame: pd.DataFrame) -> pd.DataFrame:
    """condition, answers, brier, calibration_error, confidence, accuracy, overconfidence (their difference)."""
    rated, rows = _rated(frame), []
    for name in bootstrap.order(rated):
        part = rated[rated["condition"] == name]
        by_bin = part.groupby("bin").agg(n=("correct", "size"), right=("correct", "mean"), sure=("confidence", "mean"))
        rows.append(
            {
                "condition": name,
                "answers": len(part),
                "brier": float(np.mean((part["confidence"] - part["correct"]) ** 2)),
                "calibration_error": float(np.average(abs(by_bin["right"] - by_bin["sure"]), weights=by_bin["n"])),
                "confidence": float(part["confidence"].mean()),
                "accuracy": float(part["correct"].mean()),
                "overconfidence": float(part["confidence"].mean() - part["correct"].mean()),
            }
        )
    return pd.DataFrame(rows)


def figure(table: pd.DataFrame) -> go.Figure:
    """Accuracy by confidence, from `bins`; on the dotted line confidence is what it should be."""
    drawn = plots.curves(
        table, x="confidence", y="accuracy", by="condition", title="Right answers", x_title="Confidence"
    )
    return plots.diagonal(drawn)


def _rated(frame: pd.DataFrame) -> pd.DataFrame:
    rated = frame[frame["confidence"].notna()] if "confidence" in frame else frame.head(0)
    if rated.empty:
        raise ForetellError("The responses have no confidence ratings: map a column of probabilities to 'confidence'.")
    return rated.assign(bin=np.minimum((rated["confidence"] * BINS).astype(int), BINS - 1))
