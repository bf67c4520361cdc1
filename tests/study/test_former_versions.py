"""Workspaces that former versions left behind: `tests/frozen/workspace-*.tar.gz` were made by the code of that day.

Each holds a study of six trials in four conditions, ten participants who completed it, and one in the middle.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from dashboard.cli import main as cli
from study.building.build import verify
from study.bundle import Bundle
from study.collection.export import export
from study.service import Service
from study.workspace.workspace import VARIABLE
from tests.study.participants import answer

FROZEN = Path(__file__).parents[1] / "frozen"
HASHES = {
    "2026-11-20": "d637fb5d55cc476923ebd5eab6ced16dd11cf8328862e1b17c3f06da8c905792",
    "2026-11-22": "3f20d16a948814c7f23317f71aaf90fd0f8f0903f61df39c9cf486aa1619092f",
    "0.2": "28a175d2d23e5e07ca0c6d84a01c9a68d6ba5a8cacc4aa06d7be7b452168a41f",
}
"""The study hashes that each version printed. Version 0.1 was of 20 November; `test_last_version` has a later one."""


@pytest.fixture(params=HASHES)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def kept(version: str, tmp_path: Path) -> Path:
    with tarfile.open(FROZEN / f"workspace-{version}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


@pytest.fixture
def under_way(kept: Path) -> dict[str, int | str]:
    """Token, next trial and time of the participant in the middle."""
    content: dict[str, int | str] = json.loads((kept / "under_way.json").read_text())
    return content


@pytest.fixture
def service(kept: Path, version: str, under_way: dict[str, int | str]) -> Service:
    """The workspace as its owner opens it after moving the folder, on the day it was left."""
    service = Service(kept / "home", clock=lambda: int(under_way["now"]))
    (folder,) = (kept / "home" / "bundles").iterdir()
    service.researcher.move_bundles({HASHES[version]: folder})
    return service


def test_a_former_bundle_opens_unchanged(kept: Path, version: str) -> None:
    """Catches a closed record over stored facts: `teaching.damping` of 22 November was refused as unknown."""
    (folder,) = (kept / "home" / "bundles").iterdir()
    bundle = Bundle(folder)
    assert bundle.study_hash == HASHES[version]
    assert verify(bundle, render=False) == []


def test_a_former_database_verifies_and_exports_the_same_responses(service: Service, kept: Path) -> None:
    """Catches a migration, a plan or a column that no longer agrees with what the former version stored."""
    with service:
        assert service.researcher.verify() == []
        now = pd.read_csv(export(service.researcher, "old", kept / "now.csv"))
    before = pd.read_csv(kept / "responses.csv")
    pd.testing.assert_frame_equal(now[list(before.columns)], before)


def test_a_former_participation_is_continued(service: Service, under_way: dict[str, int | str]) -> None:
    """Catches participants in the middle of a study that an update shuts out."""
    token, index = str(under_way["token"]), int(under_way["index"])
    with service:
        while service.participant.state(token)["stage"] == "main":
            assert service.participant.record(token, answer(index)).code == 201
            index += 1
        assert service.participant.state(token)["stage"] == "questionnaire"
        assert service.researcher.verify() == []


@pytest.mark.parametrize("version", ["2026-11-22"], indirect=True)
def test_a_former_study_is_analysed(service: Service, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches results that need what only a bundle of today has."""
    with service:
        path = export(service.researcher, "old", kept / "now.csv")
    monkeypatch.setenv(VARIABLE, str(kept / "home"))
    done = CliRunner().invoke(cli.build_app(), ["analyze", str(path), "--out", str(kept / "report")])
    assert done.exit_code == 0, done.output
    assert (kept / "report" / "report.html").is_file()
