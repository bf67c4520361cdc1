"""``test --quick``: the tests that a change reaches, in a small project and in this one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import quick

ROOT = Path(__file__).parents[1]
FILES = {
    "core/__init__.py": "",
    "core/table.py": 'METHODS = {"shade": "core.shade:shade"}',
    "core/shade.py": "def shade(): ...",
    "study/__init__.py": "",
    "study/use.py": "from core import table",
    "tests/__init__.py": "",
    "tests/test_shade.py": "import core.shade",
    "tests/test_use.py": "from study.use import table",
    "tests/test_style.py": 'STYLE = "dashboard/page.css"',
    "tests/test_alone.py": "import json",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of a method that only a table names, committed."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    ask(tmp_path, "init", "-q")
    ask(tmp_path, "add", ".")
    ask(tmp_path, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "first")
    return tmp_path


def ask(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


def test_a_change_reaches_tests_through_imports_and_tables(project: Path) -> None:
    """Catches a method whose table names it in a string and whose users are not tested, and an order by name."""
    assert quick.select(["core/shade.py"], project) == ["tests/test_shade.py", "tests/test_use.py"]
    assert quick.select(["tests/test_alone.py"], project) == ["tests/test_alone.py"]


def test_what_nothing_imports_reaches_the_tests_that_name_it(project: Path) -> None:
    """Catches a style sheet whose change runs no test."""
    assert quick.select(["dashboard/page.css"], project) == ["tests/test_style.py"]
    assert quick.select(["LICENSE"], project) == []


def test_changes_are_those_since_the_last_commit(project: Path) -> None:
    """Catches a new file that git does not know yet, and nothing at all where everything is committed."""
    (project / "core" / "shade.py").write_text("def shade(): return 1")
    (project / "core" / "new.py").write_text("")
    assert quick.list_changes(project) == ["core/shade.py", "core/new.py"]
    ask(project, "add", ".")
    ask(project, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "second")
    assert sorted(quick.list_changes(project)) == ["core/new.py", "core/shade.py"]


def test_every_test_of_this_project_is_reached_by_what_it_tests() -> None:
    """Catches a graph that has lost its edges: a method reaches the contracts of all methods and the page Explore."""
    reached = quick.select(["core/attribution/gradients/smoothgrad.py"])
    assert reached[0] == "tests/core/test_smoothgrad.py"
    assert {"tests/core/test_contracts.py", "tests/dashboard/views/test_explore.py"} <= set(reached)
    assert "tests/study/analysis/test_bounds.py" not in reached[:60]


def test_nothing_begins_after_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches minutes that grow with the change: what is left is skipped, with the reason."""
    (tmp_path / "test_one.py").write_text("def test_one(): pass\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.quick",
        "-q",
        "-rs",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    for until, expected in (("0", quick.LEFT_OUT), ("1e12", "1 passed")):
        monkeypatch.setenv(quick.DEADLINE, until)
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert expected in done.stdout, done.stdout + done.stderr
