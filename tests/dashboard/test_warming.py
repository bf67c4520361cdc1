"""What the first visitor of the results waits for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from dashboard.shared import warming
from tests.conftest import ROOT


def imported_by(*statements: str) -> list[set[str]]:
    """The modules that a fresh Python holds after each of the statements."""
    program = "; ".join(f"{statement}; import sys; print(*sys.modules)" for statement in statements)
    command = [sys.executable, "-c", program]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [set(line.split()) for line in printed.splitlines()]


def test_the_page_of_results_needs_no_torch_and_its_libraries_are_warmed() -> None:
    """Catches a network's library on the way to a table, and a list of libraries that the page has left behind."""
    analyses = (
        "from study.analysis.exploratory.analysis import EXPLORATORY; [EXPLORATORY[name] for name in EXPLORATORY]"
    )
    page, with_analyses = imported_by("import dashboard.results.page", analyses)
    assert "torch" not in page
    assert set(warming.LIBRARIES) <= with_analyses


def test_after_the_first_page_that_of_results_is_imported(tmp_path: Path) -> None:
    """Catches a first visit of the results that waits for modules which the reading of Home had time for, and imports
    that take their time from the first page."""
    page = str(ROOT / "dashboard/pages.py")
    run = f"from streamlit.testing.v1 import AppTest; AppTest.from_file({page!r}, default_timeout=300).run()"
    wait = "import threading; [one.join() for one in threading.enumerate() if one.name == 'warming']"
    at_once, later = imported_by(f"import os; os.environ['FORETELL_HOME'] = {str(tmp_path)!r}; {run}", wait)
    assert "dashboard.home.page" in at_once  # it was the start page that ran
    assert not {"dashboard.results.page", "statsmodels"} & at_once
    assert {"dashboard.results.page", *warming.LIBRARIES} <= later


def test_a_busy_server_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches imports next to a page that is computed. The clock says that two of three seconds were busy."""
    used, slept, imported = iter([0.0, 0.8, 0.8, 1.0, 1.0, 1.05]), [], []
    clock = SimpleNamespace(process_time=lambda: next(used), sleep=slept.append)
    monkeypatch.setattr(warming, "time", clock)
    monkeypatch.setattr(warming.importlib, "import_module", lambda name: imported.append((name, len(slept))))
    warming._import_when_idle("page")
    assert imported == [(name, 3) for name in (*warming.LIBRARIES, "page")]
    assert slept == [warming.QUIET_S] * 3


def test_it_begins_once() -> None:
    thread = warming.begin("dashboard.results.page")
    assert warming.begin("dashboard.results.page") is thread
