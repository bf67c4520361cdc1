"""Codes of two raters, in tables of responses that are texts."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from study.analysis.responses.faults import TASK
from study.tasks import TASKS

CODES = ("code_1", "code_2")
RATERS = ("the first rater", "the second rater")


def has_texts(frame: pd.DataFrame) -> bool:
    """Say whether the responses name a task whose responses are texts."""
    names = {*frame[TASK].dropna().astype(str)} if TASK in frame else set()
    return any(name in TASKS and TASKS[name].is_written for name in names)


def list_code_columns(frame: pd.DataFrame) -> dict[str, pd.Series[object]]:
    """List the columns of the raters' codes by name, under Foretell's names alone; none of other tasks."""
    return {name: frame[name] for name in CODES if name in frame} if has_texts(frame) else {}


def find_uncoded(frame: pd.DataFrame) -> Iterator[str]:
    """Report texts that are not coded by both raters: without them, every number would look final and not be it."""
    if not has_texts(frame) or "correct" not in frame:
        return
    count = int(frame["correct"].isna().sum())
    if not count:
        return
    missing = [
        f"{int(frame[name].isna().sum()):,} by {rater}"
        for name, rater in zip(CODES, RATERS, strict=True)
        if name in frame and frame[name].isna().any()
    ]
    whom = f" ({', '.join(missing)})" if missing else ""
    yield (
        f"{count:,} of {len(frame):,} texts are not coded by both raters yet{whom}, so no result is final. Code them "
        "on the page Coding, or with the command code where participants are simulated."
    )
