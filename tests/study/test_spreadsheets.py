"""No file of ours runs as a formula what a stranger wrote."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dashboard.shared import numbers
from study.collection.export import write_csv
from study.workspace.blocks import table_files
from study.workspace.spreadsheets import csv_text

EVIL = "=cmd|' /C calc'!A0"
FRAME = pd.DataFrame({EVIL: [1.5, -2.0], "participant": [EVIL, "+1"], "kind": pd.Categorical(["@x", "fish"])})


def rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_cells_and_names_are_disarmed_and_numbers_stay() -> None:
    """Catches a formula in a column's name or a category, and a negative number turned into text."""
    assert rows(csv_text(FRAME)) == [
        [f"'{EVIL}", "participant", "kind"],
        ["1.5", f"'{EVIL}", "'@x"],
        ["-2.0", "'+1", "fish"],
    ]


def test_nothing_is_rounded_and_what_is_missing_is_empty() -> None:
    """Catches numbers written with fewer digits than they have."""
    values = np.random.default_rng(0).normal(size=200)
    again = pd.read_csv(io.StringIO(csv_text(pd.DataFrame({"x": values}))))
    assert (again["x"] == values).all()
    assert csv_text(pd.DataFrame({"x": [1.0, np.nan], "y": ["a", None]})) == "x,y\n1.0,a\n,\n"


def _downloaded(frame: pd.DataFrame, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    taken: list[str] = []
    monkeypatch.setattr(numbers.files, "offer_download", lambda label, content, name, mime: taken.append(content()))
    numbers.table(frame, "x")
    return taken[0]


def _exported(frame: pd.DataFrame, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    write_csv(frame, folder / "x.csv")
    return (folder / "x.csv").read_text(encoding="utf-8")


def _run(frame: pd.DataFrame, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    report: Mapping[str, Any] = {}
    return table_files(folder, "x", frame, report, folder / "none")[0].read_text(encoding="utf-8")


@pytest.mark.parametrize("way", [_downloaded, _exported, _run])
def test_every_way_out_disarms(way: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a table's download, an export or bonus file, or the table of a long run that is written another way."""
    assert way(FRAME, tmp_path, monkeypatch) == csv_text(FRAME)


def test_no_table_is_written_another_way() -> None:
    """Catches a new file of strangers' texts written past `csv_text`; the hash of the answers is no file."""
    root = Path(__file__).parents[2]
    found = {
        str(path.relative_to(root))
        for folder in ("study", "inquiry", "dashboard", "core", "data")
        for path in (root / folder).rglob("*.py")
        if ".to_csv(" in path.read_text(encoding="utf-8")
    }
    assert found == {"study/workspace/spreadsheets.py", "study/analysis/responses/reading.py"}
