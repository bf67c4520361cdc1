"""What ``serve`` does with a workspace before the server starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from core.errors import ForetellError
from dashboard.cli.main import build_app
from study.participation.open_workspace import OpenWorkspace
from study.service import Service
from study.workspace.workspace import ROOT
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


def test_a_workspace_with_a_loss_is_refused_before_the_demo_is_built(opened: list[Path], workspace: Path) -> None:
    """Catches an order in which minutes of building come first, or something is written next to what is missing."""
    with Service(workspace) as service:
        service.researcher.open_study(write_bundle(workspace / "bundles" / "demo-1", name="demo"), per_condition=1)
    (workspace / "participants.key").write_bytes(b"x" * 32)
    before = sorted(workspace.iterdir())
    with pytest.raises(ForetellError, match="not the key of this workspace"):
        run()
    assert sorted(workspace.iterdir()) == before


def test_nothing_heavy_is_imported_before_the_socket_answers() -> None:
    """Catches an import of torch or of the statistics on the way to the first page: seconds of a first start."""
    code = "import dashboard.cli.serve, dashboard.app, dashboard.server.listening, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"torch", "torchvision", "scipy", "statsmodels", "glmm"} & set(done.stdout.split())
