"""Belief projection: do participants take the AI to see what they see themselves?

A participant's label is taken to be the truth, as in Yang, Folke & Shafto (2021, doi:10.1038/s41598-021-89267-4). The
index is the probability of predicting the truth, averaged over trials where the AI is right and where it errs with
equal weight: 1 for one who always projects, 1/2 for one who guesses, and 1/2 for one who always predicts the AI.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.errors import ForetellError
from study import plots
from study.analysis.exploratory.analysis import ExploratoryAnalysis, asks_prediction, with_figure
from study.analysis.responses import accuracies


def table(frame: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Tabulate condition, index, low, high, and ai_right, ai_wrong: P(truth) where the AI is right and wrong.

    Raises
    ------
    ForetellError
        A condition has no trials of one of the two kinds.
    """
    rows = [_condition(frame[frame["condition"] == c], c, level) for c in accuracies.order(frame)]
    return pd.DataFrame(rows)


def figure(numbers: pd.DataFrame) -> go.Figure:
    """Plot the index by condition."""
    shown = numbers.assign(measure="belief-projection index")
    return plots.intervals(
        shown, x="condition", y="index", by="measure", title="Predictions of the true class", line=0.5, percent=True
    )


def _condition(frame: pd.DataFrame, name: str, level: float) -> dict[str, object]:
    right = frame["trial_type"] == "std_correct"
    if right.all() or not right.any():
        raise ForetellError(f"Belief projection needs trials where the AI is right and wrong; {name!r} lacks one kind.")
    truth = frame.assign(truth=np.where(right, frame["correct"], 1 - frame["correct"]), right=right)
    said, asked = (counts.to_numpy() for counts in accuracies.count_by_participant(truth, "right", "truth"))
    shares, total, people = said.sum(axis=0) / asked.sum(axis=0), asked.sum(axis=0), np.array([len(said)])
    influence = ((said - shares * asked) / total).mean(axis=1, keepdims=True)  # on the mean of the two shares
    variance, index = accuracies.compute_variance(influence, people), shares.mean(keepdims=True)
    low, high = accuracies.limit_share(index, variance, people, total.sum(keepdims=True), level)
    wrong, ok = shares
    return {
        "condition": name,
        "index": float(index[0]),
        "low": float(low[0]),
        "high": float(high[0]),
        "ai_right": float(ok),
        "ai_wrong": float(wrong),
    }


ANALYSIS = ExploratoryAnalysis(
    "Belief projection",
    "100%: participants always predict what they see themselves; 50%: their predictions do not depend on it. 95% "
    "intervals over participants.",
    lambda study: with_figure(table(study.frame), figure),
    asks_prediction,
)
