"""Faults of responses that no column shows alone: repeated ones, and those to several tasks."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

import pandas as pd

from core.errors import ForetellError
from study.tasks import DEFAULT_TASK, TASKS, open_task
from study.tasks.task import TWO, Task

TASK, FIRST_CHOICE, CLASSES, LEVELS = "task", "first_choice", "n_classes", "n_levels"


def name_task(frame: pd.DataFrame) -> Task:
    """Return the task that responses name, or the default one."""
    name = str(frame[TASK].iloc[0]) if TASK in frame else DEFAULT_TASK
    return open_task(name, _read_first(frame, CLASSES) or TWO, _read_first(frame, LEVELS))


def _read_first(frame: pd.DataFrame, name: str) -> int | None:
    """Read the first number of a column; None where there is none."""
    given = pd.to_numeric(frame[name], errors="coerce").iloc[0] if name in frame else None
    return None if given is None or pd.isna(given) else int(given)


def list_task_columns(frame: pd.DataFrame) -> tuple[str, ...]:
    """List the columns of the task and its number of classes, unless they are predict and two.

    Without them, the rows have the hash they always had.
    """
    has_task = TASK in frame and set(frame[TASK].dropna().astype(str)) - {DEFAULT_TASK}
    has_classes = CLASSES in frame and set(pd.to_numeric(frame[CLASSES], errors="coerce").dropna()) - {TWO}
    return ((TASK,) if has_task else ()) + ((CLASSES,) if has_classes else ())


def list_first_columns(frame: pd.DataFrame) -> tuple[str, ...]:
    """List the column of first responses, if there are any: without it, the rows have the hash they always had."""
    return (FIRST_CHOICE,) if FIRST_CHOICE in frame and frame[FIRST_CHOICE].notna().any() else ()


def find_mixed_tasks(frame: pd.DataFrame) -> Iterator[str]:
    """Report a task that is not known, and several of them: a correct response would not mean the same."""
    columns = list_task_columns(frame)
    if CLASSES in columns:
        yield from _find_wrong_classes(frame)
    if TASK not in columns:
        return
    named = list(dict.fromkeys(frame[TASK].astype(str)))
    unknown = [name for name in named if name not in TASKS]
    if unknown:
        yield f"Column 'task': {TASKS.unknown(unknown[0])} Correct it, or rename the column if it is something else."
    elif len(named) > 1:
        yield f"Column 'task' names several tasks ({', '.join(named)}): analyse the responses to each on their own."


def _find_wrong_classes(frame: pd.DataFrame) -> Iterator[str]:
    """Report several numbers of classes, which have several levels of chance, and one that the task does not have."""
    numbers = sorted({*pd.to_numeric(frame[CLASSES], errors="coerce")})
    if len(numbers) > 1 or numbers[0] != int(numbers[0]):
        yield (
            f"Column {CLASSES!r} must have one whole number: chance is one in so many, so analyse responses with each "
            "number of classes on their own."
        )
        return
    try:
        open_task(str(frame[TASK].iloc[0]) if TASK in frame else DEFAULT_TASK, int(numbers[0]))
    except ForetellError as error:
        yield f"Column {CLASSES!r}: {error} Correct it, or rename the column if it is something else."


def find_repeats(frame: pd.DataFrame) -> Iterator[str]:
    """Report responses of a participant to one trial, or one item, twice; a trial of attributes has several items."""
    named = {*frame[TASK].dropna().astype(str)} if TASK in frame else set()
    has_attributes = any(name in TASKS and TASKS[name].of_attributes for name in named)
    numbers = ("item",) if has_attributes else ("trial", "item")
    name = next((name for name in numbers if name in frame), None)
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


def describe_missing_column(ours: str, theirs: str, known: list[str]) -> str:
    """Say that a column is missing, which names are near, and how to name another one."""
    near = difflib.get_close_matches(theirs, known, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(repr(n) for n in near)}?" if near else f"It has: {', '.join(known) or 'none'}."
    return f"Column {theirs!r} is missing. {hint} Name yours with {ours}=NAME."
