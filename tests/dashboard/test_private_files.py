"""What a command writes into the workspace is for its user alone; files at a place that they named have their umask."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dashboard.cli import main as cli
from study.service import Service
from study.workspace.workspace import VARIABLE
from tests.conftest import write_bundle

UMASK = 0o027
"""A user whose group may read: neither the usual mask nor the one of the workspace."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "home"
    monkeypatch.setenv(VARIABLE, str(folder))
    before = os.umask(UMASK)
    with Service(folder) as service:
        service.researcher.open_study(
            write_bundle(folder / "bundles" / "demo-1", name="demo", trials=2, side=8), per_condition=4
        )
    yield folder
    os.umask(before)


def run(*arguments: object) -> Result:
    done = CliRunner().invoke(cli.build_app(), [str(argument) for argument in arguments])
    assert done.exit_code == 0, (done.output, done.exception)
    return done


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_files_that_a_user_asked_for_have_their_own_mask(home: Path, tmp_path: Path) -> None:
    """A command that only closed everything would take the results from the group that reads them."""
    run("simulate", "demo", "--participants", 8)
    run("export", "demo", "--simulated", "--out", tmp_path / "new" / "answers.csv")
    run("export", "demo", "--simulated", "--psych-ds", "--out", tmp_path / "set")
    run("bonus", "demo", "--out", tmp_path / "bonus.csv")
    written = [path for name in ("new", "set") for path in [tmp_path / name, *(tmp_path / name).rglob("*")]]
    assert len(written) >= 9
    assert {path.name: mode(path) for path in written if mode(path) != (0o750 if path.is_dir() else 0o640)} == {}
    run("links", "demo", "--count", 2, "--out", tmp_path / "links.csv")
    assert mode(tmp_path / "links.csv") == 0o600  # whoever has a link may take part


def test_a_backup_is_for_its_owner_alone(home: Path, tmp_path: Path) -> None:
    """It holds ids, responses and the key; only its top folder was closed."""
    run("backup", tmp_path / "kept")
    files = [path for path in (tmp_path / "kept").rglob("*") if path.is_file() and "bundles" not in path.parts]
    assert files
    assert {path.name: mode(path) for path in files if mode(path) & 0o077} == {}


def test_a_workspace_of_an_earlier_version_is_closed_and_the_user_is_told(home: Path) -> None:
    """It was only reported, by a command that nobody has to run."""
    files = [home / "foretell.db", home / "identity.db", home / "participants.key", home / "foretell.ends"]
    for path in files:
        path.touch()
        path.chmod(0o644)
    home.chmod(0o755)
    told = run("simulate", "demo", "--participants", 1)
    assert {path.name: mode(path) for path in files} == {path.name: 0o600 for path in files}
    assert mode(home) == 0o700
    assert f"Closed to them now: {home}" in told.stderr
    assert "Closed" not in told.stdout
    assert "Closed" not in run("simulate", "demo", "--participants", 1).output


def test_commands_that_write_nothing_there_change_nothing(home: Path) -> None:
    """`doctor` reports, as long as nothing is written: the user may want to know before anything is changed."""
    home.chmod(0o755)
    assert (
        "other users of this machine can read the workspace" in CliRunner().invoke(cli.build_app(), ["doctor"]).output
    )
    assert mode(home) == 0o755


def test_a_mask_is_put_back(home: Path) -> None:
    """Else everything that a program writes after a command of ours would have our mask."""
    run("export", "demo", "--out", home.parent / "a.csv")
    assert os.umask(UMASK) == UMASK
