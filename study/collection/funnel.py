"""How far participants came, and how long those who completed took. Blinded: no condition, no outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from study.store.rows import Row

STEPS: dict[str, Callable[[Row], bool]] = {
    "Opened the study": lambda _: True,
    "Gave consent": lambda row: row["agreed_at"] is not None,
    "Passed the comprehension check": lambda row: row["condition"] is not None,
    "Responded to the first trial": lambda row: row["position"] > 0,
    "Responded to every trial": lambda row: 0 < row["practice"] + row["main"] <= row["position"],
    "Completed": lambda row: row["stage"] == "done",
}
"""The steps of a participation, in order, and whether a participant took each."""
QUANTILES = {"10%": 0.1, "Median": 0.5, "90%": 0.9}


def tabulate_funnel(sessions: Sequence[Row]) -> pd.DataFrame:
    """Count the participants who took each step or a later one, with the share of those who took the step before.

    Returns
    -------
    DataFrame
        step, participants, share (of the step before; NaN where nobody took that).
    """
    taken = [max((i for i, took in enumerate(STEPS.values()) if took(row)), default=0) for row in sessions]
    counts = [sum(last >= i for last in taken) for i in range(len(STEPS))]
    before = [len(sessions), *counts[:-1]]
    shares = [count / of if of else np.nan for count, of in zip(counts, before, strict=True)]
    return pd.DataFrame({"step": list(STEPS), "participants": counts, "share": shares})


def list_minutes(sessions: Sequence[Row]) -> pd.Series[float]:
    """List the minutes from consent to completion of the participants who completed."""
    times = [
        (row["completed_at"] - row["agreed_at"]) / 60e9
        for row in sessions
        if row["stage"] == "done" and row["completed_at"] and row["agreed_at"]
    ]
    return pd.Series(times, dtype=float, name="minutes")
