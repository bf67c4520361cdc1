"""What was measured of each trial, in tables of responses that have it."""

from __future__ import annotations

import pandas as pd

from study.plan.covariates import TRIAL_COVARIATES


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
