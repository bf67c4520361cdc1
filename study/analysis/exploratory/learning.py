"""Do participants get better at predicting the AI over the trials?"""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from core.errors import ForetellError
from study import plots
from study.analysis.exploratory.analysis import ExploratoryAnalysis, with_figure
from study.analysis.responses import accuracies

BLOCKS = 6


def table(frame: pd.DataFrame, *, blocks: int = BLOCKS) -> pd.DataFrame:
    """Tabulate condition, trial (middle of a block), `responses`, accuracy, low, high (95%, over participants).

    Raises
    ------
    ForetellError
        There is no column ``trial`` of numbers.
    """
    numbered = _parse_trial_numbers(frame)
    cuts = pd.cut(numbered["trial"], min(blocks, numbered["trial"].nunique()), labels=False, include_lowest=True)
    numbered = numbered.assign(block=cuts)
    middles = numbered.groupby("block")["trial"].mean()
    rows = []
    for name in accuracies.order(numbered):
        right, given = accuracies.count_by_participant(numbered[numbered["condition"] == name], "block")
        share, low, high = accuracies.compute_intervals(right.to_numpy(), given.to_numpy(), 0.95)
        rows += [
            (name, float(middles[block]), int(given[block].sum()), float(share[k]), float(low[k]), float(high[k]))
            for k, block in enumerate(right.columns)
        ]
    return pd.DataFrame(rows, columns=["condition", "trial", "responses", "accuracy", "low", "high"])


def figure(numbers: pd.DataFrame) -> go.Figure:
    """Plot the accuracy over the trials, one line for each condition."""
    return plots.curves(numbers, x="trial", y="accuracy", by="condition", title="Correct responses", x_title="Trial")


def _parse_trial_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    numbers = pd.to_numeric(frame["trial"], errors="coerce") if "trial" in frame else pd.Series(dtype=float)
    if numbers.isna().all():
        raise ForetellError(
            "The responses have no column 'trial' of numbers: name the column with each trial's place in the order."
        )
    return frame.assign(trial=numbers)[numbers.notna()]


ANALYSIS = ExploratoryAnalysis(
    "Learning over trials",
    "Accuracy in blocks of trials; 95% intervals over participants.",
    lambda study: with_figure(table(study.frame), figure),
)
