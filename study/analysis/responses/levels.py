"""Levels of a scale as responses: of tasks in which none is right or wrong, in the place of the column `correct`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from core.errors import ForetellError
from study.analysis.responses.faults import LEVELS, TASK, name_task
from study.analysis.responses.outcome import ACCURACY, LEVEL
from study.tasks import TASKS

COLUMNS = (LEVEL.column, LEVELS)


def list_required(frame: pd.DataFrame, columns: Mapping[str, str], usual: Sequence[str]) -> tuple[str, ...]:
    """List the columns that responses need: of a task without right responses, `level` in the place of `correct`.

    Parameters
    ----------
    columns
        The file's name of each of our columns.
    usual
        Those of other tasks.

    Raises
    ------
    ForetellError
        Responses to such a task are among those to another one.
    """
    source = columns.get(TASK, TASK)
    named = list(dict.fromkeys(frame[source].dropna().astype(str))) if source in frame else []
    rated = [name for name in named if name in TASKS and not TASKS[name].is_scored]
    if rated and len(named) > 1:
        raise ForetellError(
            f"Column {source!r} names several tasks ({', '.join(named)}): analyse the responses to each on their own."
        )
    return tuple(LEVEL.column if rated and name == ACCURACY.column else name for name in usual)


def separate(frame: pd.DataFrame, required: Sequence[str]) -> pd.DataFrame:
    """Leave out the column of the other outcome: of rated responses `correct`, of others the levels."""
    return frame.drop(columns=[ACCURACY.column] if LEVEL.column in required else list(COLUMNS), errors="ignore")


def find_wrong_levels(frame: pd.DataFrame) -> Iterator[str]:
    """Report levels that are no whole numbers, off the scale, or all the same."""
    if LEVEL.column not in frame:
        return
    given, numbers = frame[LEVEL.column], pd.to_numeric(frame[LEVEL.column], errors="coerce")
    try:
        most = name_task(frame).count
    except (ForetellError, ValueError) as error:
        yield f"Column {LEVELS!r}: {error} Write the number of levels of the scale in each row."
        return
    wrong = given[~numbers.isin(range(1, most + 1))]
    if len(wrong):
        yield (
            f"Column {LEVEL.column!r} must have whole numbers from 1 to {most}, but row {wrong.index[0] + 1} says "
            f"{str(wrong.iloc[0])!r}: correct it. A scale with another number of levels needs the column {LEVELS!r}."
        )
    elif numbers.nunique() < 2:
        yield (
            f"Column {LEVEL.column!r} never varies: every response is {int(numbers.iloc[0])}, so there is nothing to "
            "model. Collect more responses."
        )


def read_levels(frame: pd.DataFrame) -> dict[str, pd.Series[int]]:
    """Read the columns of levels that responses have, as whole numbers."""
    return {name: pd.to_numeric(frame[name]).astype("int64") for name in COLUMNS if name in frame}
