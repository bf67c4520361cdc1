"""Work on one workspace shared out among processes: a unit is whole on disk, or one process is at it, or it is free."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from filelock import FileLock, Timeout

from core.types import Progress

Result = TypeVar("Result")
ClaimedUnit = TypeVar("ClaimedUnit")
WAIT = 0.1
"""Seconds between two looks at what another process is at."""


def shared(
    units: Iterable[ClaimedUnit],
    path: Callable[[ClaimedUnit], Path],
    load: Callable[[ClaimedUnit], Result | None],
    make: Callable[[ClaimedUnit, Progress], Result],
    progress: Progress,
    what: str,
) -> list[Result]:
    """Return the results of all units, in order: what is on disk as it is, the rest made here or by another process.

    ``load`` gives None where a unit is not there whole; ``make`` puts it on disk at ``path`` in one step, and is given
    a progress to call now and then. A process that is killed loses its claims, and its unit is made by another.
    """
    todo = list(units)
    done: dict[int, Result] = {}

    def beat(*_: object) -> None:
        progress(len(done), len(todo), what)

    while len(done) < len(todo):
        before = len(done)
        for i, unit in enumerate(todo):
            result = None if i in done else _result(unit, path(unit), load, lambda unit: make(unit, beat))
            if result is not None:
                done[i] = result
                beat()
        if len(done) == before:
            beat()
            time.sleep(WAIT)
    return [done[i] for i in range(len(todo))]


def _result(
    unit: ClaimedUnit, path: Path, load: Callable[[ClaimedUnit], Result | None], make: Callable[[ClaimedUnit], Result]
) -> Result | None:
    """Return the unit as it is on disk, or made here; None where another process is at it."""
    found = load(unit)
    if found is not None:
        return found
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(path.with_name(f".{path.name}.lock"), blocking=False):
            found = load(unit)  # another may have made it since
            return make(unit) if found is None else found
    except Timeout:
        return None
