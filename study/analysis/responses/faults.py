"""Faults of responses that no column shows alone: repeated ones, and those to several tasks."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from study.tasks import DEFAULT_TASK, TASKS
from study.tasks.task import Task

TASK, FIRST_CHOICE = "task", "first_choice"


def name_task(frame: pd.DataFrame) -> Task:
    """Return the task that responses name, or the default one."""
    task: Task = TASKS[str(frame[TASK].iloc[0]) if TASK in frame else DEFAULT_TASK]
    return task


def list_task_columns(frame: pd.DataFrame) -> tuple[str, ...]:
    """List the column of the task, unless it is the default one: without it, the rows have the hash they always had."""
    return (TASK,) if TASK in frame and set(frame[TASK].dropna().astype(str)) - {DEFAULT_TASK} else ()


def list_first_columns(frame: pd.DataFrame) -> tuple[str, ...]:
    """List the column of first responses, if there are any: without it, the rows have the hash they always had."""
    return (FIRST_CHOICE,) if FIRST_CHOICE in frame and frame[FIRST_CHOICE].notna().any() else ()


def find_mixed_tasks(frame: pd.DataFrame) -> Iterator[str]:
    """Report a task that is not known, and several of them: a correct response would not mean the same."""
    if not list_task_columns(frame):
        return
    named = list(dict.fromkeys(frame[TASK].astype(str)))
    unknown = [name for name in named if name not in TASKS]
    if unknown:
        yield f"Column 'task': {TASKS.unknown(unknown[0])} Correct it, or rename the column if it is something else."
    elif len(named) > 1:
        yield f"Column 'task' names several tasks ({', '.join(named)}): analyse the responses to each on their own."


def find_repeats(frame: pd.DataFrame) -> Iterator[str]:
    """Report responses of a participant to one trial, or one item, twice."""
    name = next((name for name in ("trial", "item") if name in frame), None)
    if name is None:
        return
    twice = frame[frame[name].notna() & frame.duplicated(["participant", name])]
    if len(twice):
        first = twice.iloc[0]
        remedy = "" if name == "trial" else ", or tell repeated items apart by a column 'trial'"
        yield (
            f"{len(twice)} rows repeat a participant's {name} (first: participant {first['participant']}, {name} "
            f"{first[name]}, row {twice.index[0] + 1}): keep one response per participant and {name}{remedy}."
        )
