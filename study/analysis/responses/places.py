"""Columns of responses that are places, in tables of responses that have them."""

from __future__ import annotations

import pandas as pd

from study.analysis.responses.faults import TASK
from study.tasks import TASKS

CHANCE, CELLS = "chance", "cells"
NUMBERS = ("distance", "peak_distance", "object_hit", "pointing", "iou", "permuted_iou", "rank_correlation", CHANCE)


def has_places(frame: pd.DataFrame) -> bool:
    """Say whether the responses name a task whose responses are places."""
    names = {*frame[TASK].dropna().astype(str)} if TASK in frame else set()
    return any(name in TASKS and TASKS[name].place is not None for name in names)


def list_place_columns(frame: pd.DataFrame) -> dict[str, pd.Series[object]]:
    """List the columns of places and their scores by name, under Foretell's names alone; none of other tasks."""
    if not has_places(frame):
        return {}
    numbers = {name: pd.to_numeric(frame[name], errors="coerce") for name in NUMBERS if name in frame}
    known: dict[str, pd.Series[object]] = {name: one for name, one in numbers.items() if one.notna().any()}
    return known | ({CELLS: frame[CELLS]} if CELLS in frame and frame[CELLS].notna().any() else {})
