"""Finished pieces of a long run, kept in a folder so that a run that was killed goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from study.files import replacing

Columns = dict[str, np.ndarray]


class Blocks:
    """Arrays by name of a piece. ``folder`` None keeps nothing; pieces of another request are never taken."""

    def __init__(self, folder: Path | None, facts: Mapping[str, Any], ids: Iterable[str]) -> None:
        whole = "\0".join([json.dumps(facts, sort_keys=True), *ids])
        self.folder, self._key = folder, hashlib.sha256(whole.encode()).hexdigest()[:32]
        self._files: list[Path] = []

    def get(self, name: str, make: Callable[[], Columns]) -> Columns:
        """The piece of that name: as it was kept, or made and kept."""
        if self.folder is None:
            return make()
        path = self.folder / f"{self._key}.{name}.npz"
        self._files.append(path)
        if path.is_file():
            with np.load(path) as file:
                return dict(file)
        columns = make()
        with replacing(path) as file:
            np.savez(file, allow_pickle=False, **columns)
        return columns

    def clear(self) -> None:
        """Take away what was kept: the run is done."""
        for path in self._files:
            path.unlink(missing_ok=True)
        if self.folder is not None:
            with suppress(OSError):  # not there, or another run keeps its pieces there
                self.folder.rmdir()
