"""Long computations over images in blocks, each saved until all are complete."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.types import Progress
from study.workspace.files import open_replacement, write_whole
from study.workspace.spreadsheets import csv_text

Columns = Mapping[str, NDArray[Any]]


def table_files(out: Path, stem: str, table: pd.DataFrame, report: Mapping[str, Any], parts: Path) -> tuple[Path, Path]:
    """Write ``<stem>.csv`` and ``.json`` into ``out``, and remove ``parts`` if no other run has blocks there."""
    csv = write_whole(out / f"{stem}.csv", csv_text(table).encode())
    with suppress(OSError):
        parts.rmdir()
    told = json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return csv, write_whole(out / f"{stem}.json", told.encode())


class Blocks:
    """Blocks of images in a folder, under a key of everything that they depend on.

    Parameters
    ----------
    folder
        Folder for finished blocks, from which a killed run resumes; None saves nothing.
    key
        Key that distinguishes this computation from others there.
    count, size
        Number of images in total and in a block; a killed run loses at most one block.
    """

    def __init__(self, folder: Path | None, key: str, count: int, size: int) -> None:
        self._folder, self._key, self._count, self._size = folder, key, count, size

    def join(self, compute: Callable[[range], Columns], progress: Progress, what: str) -> dict[str, NDArray[Any]]:
        """Join the columns of all images, computing missing blocks by ``compute``."""
        blocks = []
        for number, rows in enumerate(self._blocks()):
            path = self._path(number)
            blocks.append(load_columns(path) or _save_columns(path, compute(rows)))
            progress(rows[-1] + 1, self._count, what)
        return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}

    def count_missing(self) -> int:
        """Count the images whose block is not saved."""
        paths = [(rows, self._path(number)) for number, rows in enumerate(self._blocks())]
        return sum(len(rows) for rows, path in paths if path is None or not path.is_file())

    def forget(self) -> None:
        """Remove the blocks after their result has been written."""
        for number, _ in enumerate(self._blocks()):
            path = self._path(number)
            if path is not None:
                path.unlink(missing_ok=True)

    def _blocks(self) -> Iterator[range]:
        for start in range(0, self._count, self._size):
            yield range(start, min(start + self._size, self._count))

    def _path(self, number: int) -> Path | None:
        return self._folder / f"{self._key}.{number}.npz" if self._folder else None


class Pieces:
    """Named pieces of a long run, saved in ``folder`` (None saves nothing) under a key of all that they depend on."""

    def __init__(self, folder: Path | None, key: str) -> None:
        self._folder, self._key = folder, key
        self._files: list[Path] = []

    def get(self, name: str, compute: Callable[[], Columns]) -> Columns:
        """Load the piece of that name, or compute and save it."""
        path = self._folder / f"{self._key}.{name}.npz" if self._folder else None
        self._files += [path] if path else []
        return load_columns(path) or _save_columns(path, compute())

    def forget(self) -> None:
        """Remove the pieces after their result has been written."""
        for path in self._files:
            path.unlink(missing_ok=True)


def load_columns(path: Path | None) -> dict[str, NDArray[Any]] | None:
    """Load the columns saved in a file; None if it is missing or damaged, so that it is computed again."""
    if path is None:
        return None
    with suppress(OSError, ValueError, EOFError, BadZipFile), np.load(path) as file:
        return dict(file)
    return None


def _save_columns(path: Path | None, columns: Columns) -> Columns:
    if path is not None:
        with open_replacement(path) as file:
            np.savez(file, allow_pickle=False, **columns)
    return columns
