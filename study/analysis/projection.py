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
from study.analysis import bootstrap, plots
from study.analysis.exploratory import ExploratoryAnalysis, with_figure


def table(
    frame: pd.DataFrame, *, rng: np.random.Generator, resamples: int = bootstrap.RESAMPLES, level: float = 0.95
) -> pd.DataFrame:
    """Tabulate condition, index, low, high (resampled), ai_right, ai_wrong: P(truth) where the AI is right and wrong.

    Raises
    ------
    ForetellError
        A condition has no trials of one of the two kinds.
    """
    rows = [_condition(frame[frame["condition"] == c], c, rng, resamples, level) for c in bootstrap.order(frame)]
    return pd.DataFrame(rows)


def figure(numbers: pd.DataFrame) -> go.Figure:
    """Plot the index by condition."""
    shown = numbers.assign(measure="belief-projection index")
    return plots.intervals(
        shown, x="condition", y="index", by="measure", title="Predictions of the true class", line=0.5, percent=True
    )


def _condition(
    frame: pd.DataFrame, name: str, rng: np.random.Generator, resamples: int, level: float
) -> dict[str, object]:
    right = frame["trial_type"] == "std_correct"
    if right.all() or not right.any():
        raise ForetellError(f"Belief projection needs trials where the AI is right and wrong; {name!r} lacks one kind.")
    truth = frame.assign(truth=np.where(right, frame["correct"], 1 - frame["correct"]), right=right)
    people = truth.groupby(["participant", "right"])["truth"].agg(["sum", "count"]).unstack("right", fill_value=0)
    said, asked = people["sum"].to_numpy(dtype=np.float64), people["count"].to_numpy(dtype=np.float64)
    wrong, ok = said.sum(axis=0) / asked.sum(axis=0)
    draws = bootstrap.resample(said, asked, resamples, rng).mean(axis=1)
    low, high = np.nanquantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return {
        "condition": name,
        "index": float((wrong + ok) / 2),
        "low": float(low),
        "high": float(high),
        "ai_right": float(ok),
        "ai_wrong": float(wrong),
    }


ANALYSIS = ExploratoryAnalysis(
    "Belief projection",
    "100%: participants always predict what they see themselves; 50%: their predictions do not depend on it. 95% "
    "intervals, participants resampled.",
    lambda study: with_figure(table(study.frame, rng=study.rng), figure),
)
