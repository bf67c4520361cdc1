"""Outcomes by condition: what a blinded look at a collection leaves out."""

from __future__ import annotations

import pandas as pd


def outcomes(answers: pd.DataFrame, people: pd.DataFrame) -> pd.DataFrame:
    """condition, begun, done (people), answers, accuracy (share of right predictions), median_rt_ms."""
    given = people[people["condition"].notna()].groupby("condition")
    table = given.agg(begun=("participant", "size"), done=("stage", lambda stages: int((stages == "done").sum())))
    found = answers.groupby("condition").agg(
        answers=("correct", "size"), accuracy=("correct", "mean"), median_rt_ms=("rt_ms", "median")
    )
    return table.join(found).fillna({"answers": 0}).astype({"answers": int}).reset_index()
