"""What only some tables of responses have: their dates, and what was measured of each trial."""

from __future__ import annotations

import pandas as pd

from study.plan.covariates import TRIAL_COVARIATES


def find_dates(frame: pd.DataFrame) -> tuple[str, str] | None:
    """Find the days of the first and the last row; None unless every row has one."""
    days = sorted(set(frame["received_at"].astype(str).str[:10])) if "received_at" in frame else []
    if not days or pd.to_datetime(pd.Series(days), format="%Y-%m-%d", errors="coerce").isna().any():
        return None
    return days[0], days[-1]


def read_covariates(frame: pd.DataFrame, item: str) -> pd.DataFrame:
    """Read what was measured of each trial, under Foretell's names alone; ``item`` is the column of images.

    Returns
    -------
    pandas.DataFrame
        item and each covariate, each combination once, not checked: most plans need none of them.
    """
    present = [name for name in TRIAL_COVARIATES if name in frame]
    if item not in frame or not present:
        return pd.DataFrame()
    return frame[[item, *present]].rename(columns={item: "item"}).drop_duplicates(ignore_index=True)
