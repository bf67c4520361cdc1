"""Response times: their distribution, not only its mean."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.errors import ForetellError
from study import plots
from study.analysis.exploratory.analysis import ExploratoryAnalysis, with_figure
from study.analysis.responses import accuracies

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Tabulate condition, trial_type, correct, `responses` and the deciles and quartiles of response time, ms.

    Quantiles of each participant, averaged (Vincent's method; Ratcliff, 1979, doi:10.1037/0033-2909.86.3.446),
    so that slow participants do not fill the tail alone.

    Raises
    ------
    ForetellError
        There is no column ``rt_ms`` with positive times.
    """
    timed = select_timed(frame)
    keys = ["condition", "trial_type", "correct"]
    own = timed.groupby([*keys, "participant"], observed=True)["rt_ms"].quantile(list(QUANTILES)).unstack()
    made = own.groupby(level=keys, observed=True).mean()
    made.columns = pd.Index([f"q{round(100 * q)}" for q in QUANTILES])
    made.insert(0, "responses", timed.groupby(keys, observed=True).size())
    return made.reset_index()


def select_timed(frame: pd.DataFrame) -> pd.DataFrame:
    """Select the responses with a positive time.

    Raises
    ------
    ForetellError
        There are none.
    """
    timed = frame[frame["rt_ms"] > 0] if "rt_ms" in frame else frame.head(0)
    if timed.empty:
        raise ForetellError("The responses have no response times: name a column of milliseconds 'rt_ms'.")
    return timed


def figure(numbers: pd.DataFrame) -> go.Figure:
    """Plot the median of correct responses with the quartiles as bars, by condition and trial type."""
    right = numbers[numbers["correct"] == 1].rename(columns={"q25": "low", "q75": "high"})
    order = {name: k for k, name in enumerate(accuracies.order(right))}
    right = right.assign(place=right["condition"].map(order)).sort_values("place", kind="stable")
    drawn = plots.intervals(right, x="condition", y="q50", by="trial_type", title="Response time, ms (log scale)")
    top = float(np.log10(right["high"].max())) + 0.1
    return drawn.update_yaxes(type="log", range=[float(np.log10(right["low"].min())) - 0.1, top])


ANALYSIS = ExploratoryAnalysis(
    "Response times",
    "Median and quartiles of each participant's correct responses, averaged over participants.",
    lambda study: with_figure(table(study.frame), figure),
    lambda study: not study.data.task.of_attributes,
)
