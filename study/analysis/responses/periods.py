"""Conditions within participants: the period of each response, and the condition of the period before."""

from __future__ import annotations

import pandas as pd

PERIOD = "period"
PREVIOUS = "previous_condition"
FIRST = "(first period)"
"""The previous condition of a participant's first period."""


def has_periods(frame: pd.DataFrame) -> bool:
    """Whether the column of periods numbers those of a study within participants.

    Whole numbers from 1 in every row, and one condition in each period of a participant. Any other column of this name
    is something else, and means nothing here.
    """
    if PERIOD not in frame or frame.empty:
        return False
    numbers = pd.to_numeric(frame[PERIOD], errors="coerce")
    if numbers.isna().any() or (numbers < 1).any() or (numbers % 1 != 0).any() or numbers.nunique() < 2:
        return False
    columns = [name for name in ("condition", "saliency", "examples") if name in frame]
    met = frame[columns].astype(str).groupby([frame["participant"].astype(str), numbers]).nunique()
    return int(met.max(axis=None)) == 1


def are_crossed(frame: pd.DataFrame) -> bool:
    """Whether participants were in several conditions, so that these are compared within participants."""
    return bool((frame.groupby("participant", observed=True)["condition"].nunique() > 1).any())


def list_period_columns(frame: pd.DataFrame) -> tuple[str, ...]:
    """List the column of periods if there are any: without it, the rows have the hash they always had."""
    return (PERIOD,) if has_periods(frame) else ()


def add_previous_conditions(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the responses with the condition of the participant's period before, `FIRST` in their first period."""
    periods = frame.groupby(["participant", PERIOD], observed=True)["condition"].first()
    before = periods.groupby(level=0).shift().fillna(FIRST)
    keys = pd.MultiIndex.from_frame(frame[["participant", PERIOD]])
    return frame.assign(**{PREVIOUS: before.reindex(keys).to_numpy()})
