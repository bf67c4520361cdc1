"""Files that several processes read and write: written whole or not at all, and each made by one of them."""

from __future__ import annotations

import errno
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TypeVar

from filelock import FileLock, Timeout

from core.errors import ForetellError
from core.types import Progress

Result = TypeVar("Result")
ClaimedUnit = TypeVar("ClaimedUnit")

WAIT = 0.1
"""Seconds between two checks of another process's unit."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
PRIVATE = 0o077
"""Umask of a process whose files are for this user alone."""
_masks: list[int] = []
"""The user's own umask, while this process has another one."""


@contextmanager
def private_files() -> Iterator[None]:
    """Make files written in this block readable by this user only, except those inside `shared_files`."""
    _masks.append(os.umask(PRIVATE))
    try:
        yield
    finally:
        os.umask(_masks.pop())


@contextmanager
def shared_files() -> Iterator[None]:
    """Write files that a user asked for, at a place that they named, with their own umask."""
    if not _masks:
        yield
        return
    before = os.umask(_masks[0])
    try:
        yield
    finally:
        os.umask(before)


def close_to_others(database: Path) -> None:
    """Make a database that this user owns readable and writable by its owner only.

    SQLite gives its log the mode of the database.
    """
    with suppress(OSError):  # owned by another user, or on a disk without modes: `doctor` reports it
        for end in ("", "-wal", "-shm"):
            path = database.with_name(f"{database.name}{end}")
            if path.exists():
                path.chmod(0o600)


@contextmanager
def open_replacement(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that replaces ``path`` in one step when the block ends; its folder is created.

    Each writer has its own temporary name, so two processes do not interfere; after an exception nothing
    has changed.

    Raises
    ------
    ForetellError
        No space is left.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = path.parent / f"{secrets.token_hex(8)}.partial"
    try:
        with whole.open("xb") as file:
            try:
                yield file
                file.flush()
            except BaseException:
                with suppress(OSError):  # closing flushes again
                    file.close()
                raise
        whole.replace(path)
    except BaseException as error:  # also one between two lines: a helper of a build may be stopped at any moment
        whole.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in FULL:
            raise ForetellError(
                f"The disk or quota of {path.parent} is full. Free some space and run the same command again: "
                "finished work is saved."
            ) from None
        raise


def write_whole(path: Path, content: bytes) -> Path:
    """Write ``content`` by `open_replacement`; return the path."""
    with open_replacement(path) as file:
        file.write(content)
    return path


def gather_results(
    units: Iterable[ClaimedUnit],
    path: Callable[[ClaimedUnit], Path],
    load: Callable[[ClaimedUnit], Result | None],
    make: Callable[[ClaimedUnit, Progress], Result],
    progress: Progress,
    what: str,
) -> list[Result]:
    """Return the results of all units, in order: what is on disk as it is, the rest made here or by another process.

    A unit is whole on disk, or one process is at it, or it is free.
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
    result = load(unit)
    if result is not None:
        return result
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(path.with_name(f".{path.name}.lock"), blocking=False):
            result = load(unit)  # another may have made it since
            return make(unit) if result is None else result
    except Timeout:
        return None
