"""Rows of a long benchmark, kept as they come, so that it can be stopped and continued."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CODE = ("benchmarks", "core", "data")
Row = dict[str, Any]


class Rows:
    """JSON lines in a file. Rows of other code or settings stay in it and count for nothing.

    Parameters
    ----------
    path
        The file; made with its folder if missing.
    settings
        What a row's value depends on besides its key, JSON-ready; the code is added.
    """

    def __init__(self, path: Path, settings: Row) -> None:
        self._path = path
        self._stamp = hashlib.sha256(json.dumps([settings, _code()], sort_keys=True).encode()).hexdigest()
        self._known: dict[tuple[str, ...], Row] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
            self._keep(line)

    def __len__(self) -> int:
        return len(self._known)

    def get(self, *key: str) -> Row | None:
        """The row kept under ``key``, or None."""
        return self._known.get(key)

    def add(self, row: Row, *key: str) -> Row:
        """Keep a row under ``key``, on the disk before anything else happens."""
        with self._path.open("a", encoding="utf-8") as file:
            # A line of its own, also after one that a kill cut short.
            file.write("\n" + json.dumps({"stamp": self._stamp, "key": key, "row": row}))
        self._known[key] = row
        return row

    def _keep(self, line: str) -> None:
        try:
            kept = json.loads(line)
        except json.JSONDecodeError:
            return
        if kept["stamp"] == self._stamp:
            self._known[tuple(kept["key"])] = kept["row"]


def _code() -> str:
    """SHA-256 over the source of what makes maps and scenes and asks about them."""
    digest = hashlib.sha256()
    for path in sorted(path for package in CODE for path in (ROOT / package).rglob("*.py")):
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()
