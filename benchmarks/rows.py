"""Rows of a long benchmark, saved one by one, so that it can be interrupted and resumed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.machine import arguments, hand_over, join_measured, note_join
from core.attribution import METHODS
from study.workspace.workspace import home

ROOT = Path(__file__).resolve().parents[1]
CODE = ("benchmarks", "core", "data")
Row = dict[str, Any]


class Rows:
    """JSON lines in a file. Rows of other code or settings stay in it and are ignored.

    Parameters
    ----------
    path
        The file; created with its folder if missing.
    settings
        Whatever else a row's value depends on, JSON-ready; the code is added.
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
        """Return the row saved under ``key``, or None."""
        return self._known.get(key)

    def add(self, row: Row, *key: str) -> Row:
        """Save a row under ``key`` on disk."""
        with self._path.open("a", encoding="utf-8") as file:
            # A new line, also after one that a kill truncated.
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


def run_by_method(
    benchmark: str, networks: Iterable[str], measure: Callable[[list[str], list[str], Rows], dict[str, Any]]
) -> None:
    """Run ``measure(networks, methods, rows)`` for the networks, heatmap methods and file of the command line."""
    parser = arguments(benchmark)
    parser.add_argument("--methods", default=",".join(METHODS), help="only these, with commas")
    parser.add_argument("--networks", default=",".join(networks), help="only these, with commas")
    parser.add_argument("--rows", type=Path, help="file of the rows; in the workspace by default")
    parser.add_argument("--join", type=Path, help="a stored result, whose rows of these methods are replaced")
    given = parser.parse_args()
    methods = given.methods.split(",")
    for name in methods:
        METHODS[name]  # refuse unknown names before measuring anything
    rows = Rows(given.rows or home() / "benchmarks" / f"{benchmark}.jsonl", {"threads": given.threads})
    work = partial(measure, given.networks.split(","), methods, rows)
    if given.join is None:
        hand_over(benchmark, given, work)
    else:
        join_measured(given, work, join_rows)


def join_rows(stored: dict[str, Any], measured: dict[str, Any], machine: dict[str, Any]) -> dict[str, Any]:
    """Replace the rows of the networks and methods that were measured again, and note when."""
    result = stored["result"] | {name: stored["result"].get(name, {}) | rows for name, rows in measured.items()}
    methods = {name: list(rows) for name, rows in measured.items()}
    return stored | {"machine": note_join(stored, machine, methods), "result": result}


def _code() -> str:
    """Hash the source of the code for heatmaps, scenes and their scores (SHA-256)."""
    digest = hashlib.sha256()
    for path in sorted(path for package in CODE for path in (ROOT / package).rglob("*.py")):
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()
