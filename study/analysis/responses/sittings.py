"""Several sittings of participants: the sitting of each response."""

from __future__ import annotations

import pandas as pd

from study.plan.covariates import SITTING


def list_sitting_columns(frame: pd.DataFrame) -> tuple[str, ...]:
    """List the column of sittings if there are several: without it, the rows have the hash they always had.

    Whole numbers from 1 in every row. Any other column of this name is something else, and means nothing here.
    """
    if SITTING not in frame or frame.empty:
        return ()
    numbers = pd.to_numeric(frame[SITTING], errors="coerce")
    is_numbered = numbers.notna().all() and (numbers >= 1).all() and (numbers % 1 == 0).all()
    return (SITTING,) if is_numbered and numbers.nunique() > 1 else ()


def number_sittings(frame: pd.DataFrame) -> pd.Series[int]:
    """Number the sittings of responses from 1, also where the models have them in standard deviations."""
    return frame[SITTING].rank(method="dense").astype(int)
