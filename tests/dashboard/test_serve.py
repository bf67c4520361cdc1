"""What ``serve`` does with a workspace before the server starts."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from core.errors import ForetellError
from dashboard.cli import serve
from dashboard.cli.main import build_app
from study.participation.open_workspace import OpenWorkspace
from study.service import Service
from study.workspace.provenance import code_digest
from study.workspace.workspace import ROOT, database, home
from tests.conftest import write_bundle
from tests.ports import free_port


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, workspace: Path) -> list[Path]:
    """Each opening of a workspace, in a process whose server ends at once and whose demo is not built."""
    monkeypatch.chdir(workspace)
    monkeypatch.setattr("uvicorn.run", lambda *_, **__: None)
    openings: list[Path] = []
    begin = OpenWorkspace.__init__

    def note(self: OpenWorkspace, home: Path, *rest: Any) -> None:
        openings.append(home)
        begin(self, home, *rest)

    monkeypatch.setattr(OpenWorkspace, "__init__", note)
    return openings


def run(*options: str) -> str:
    command = ["serve", "--no-browser", "--port", str(free_port()), *options]
    return CliRunner().invoke(build_app(), command, catch_exceptions=False).output


def test_the_workspace_is_opened_once(opened: list[Path], workspace: Path) -> None:
    """Catches a start that opens, checks and indexes the databases once for each question that it asks."""
    assert "opens the researcher's pages once: http" in run("--no-demo")
    with Service(workspace) as service:
        service.access.set_password("long enough for a password")
    opened.clear()
    assert "No password" not in run("--no-demo")
    assert opened == [workspace.resolve()]


def test_a_workspace_with_a_loss_is_refused_before_the_demo_is_built(
    opened: list[Path], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches an order in which minutes of building come first, or something is written next to what is missing."""
    with Service(workspace) as service:
        service.researcher.open_study(write_bundle(workspace / "bundles" / "demo-1", name="demo"), per_condition=1)
    (workspace / "participants.key").write_bytes(b"x" * 32)
    monkeypatch.setattr(serve, "_fill", lambda *_: pytest.fail("the demo was built"))
    with pytest.raises(ForetellError, match="not the key of this workspace"):
        run()


def test_the_demo_is_filled_again_where_the_database_does_not_have_it(
    opened: list[Path], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a demo that is never opened again after foretell.db was deleted: opening made the file anew."""
    filled: list[Path] = []
    monkeypatch.setattr(serve, "_fill", lambda service, file: filled.append(file))
    study_file = ROOT / "data" / "studies" / "demo.toml"
    folder = write_bundle(workspace / "bundles" / "demo-1", name="demo")
    mark = code_digest().encode() + str(database(home())).encode() + study_file.read_bytes()
    (workspace / "demo.done").write_text(hashlib.sha256(mark).hexdigest())
    run()
    assert filled == [study_file]
    with Service(workspace) as service:
        service.researcher.open_study(folder, per_condition=1)
    run()
    assert filled == [study_file]
