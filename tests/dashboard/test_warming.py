"""What the first visitor of the results waits for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


def test_explore_waits_for_no_statistics() -> None:
    """Catches half a second before the first heatmap, for functions that another view calls."""
    (page,) = imported_by("import dashboard.app, dashboard.explore.page")
    assert "torch" in page
    assert not {"scipy.stats", "scipy.optimize", "scipy.cluster", "sklearn", "statsmodels"} & page


def test_after_the_first_page_that_of_results_is_imported(tmp_path: Path) -> None:
    """Catches a first visit of the results that waits for modules which the reading of Home had time for."""
    page = str(ROOT / "dashboard/pages.py")
    run = f"from streamlit.testing.v1 import AppTest; AppTest.from_file({page!r}, default_timeout=300).run()"
    (modules,) = imported_by(f"import os; os.environ['FORETELL_HOME'] = {str(tmp_path)!r}; {run}")
    assert "dashboard.home.page" in modules  # it was the start page that ran
    assert "dashboard.results.page" in modules


def test_it_begins_once() -> None:
    thread = warming.begin()
    thread.join()
    assert warming.begin() is thread
    assert set(warming.LIBRARIES) <= set(sys.modules)
