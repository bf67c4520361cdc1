"""What is kept is for its owner alone, and a bundle of a stranger neither stops nor fills a backup."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.errors import ForetellError
from dashboard.cli import main as cli
from dashboard.studies.workspace_studies import list_studies
from study.bundle import Bundle
from study.collection.backup import backup, restore
from study.service import Service
from study.store import StoreError
from study.workspace.workspace import VARIABLE, bundles
from tests.study.participants import MakeBundle

ROOT = Path(__file__).parents[3]
OPEN = "import os, sys; from pathlib import Path; from study.service import Service\nos.umask(0o022)\n"


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_workspace_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Databases were readable by every user of the machine; also those that an earlier version made."""
    home = tmp_path / "home"
    made = OPEN + "Service(Path(sys.argv[1])).workspace.keep_watch(); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", made, str(home)], cwd=ROOT, check=False)
    assert mode(home) == 0o700
    assert {"foretell.db", "foretell.db-wal", "identity.db", "foretell.ends"} <= {path.name for path in home.iterdir()}
    assert {path.name: mode(path) for path in home.iterdir() if mode(path) != 0o600} == {}
    for path in home.iterdir():
        path.chmod(0o644)
    Service(home).close()
    assert {path.name: mode(path) for path in home.glob("*.db*") if mode(path) != 0o600} == {}


def test_doctor_says_who_else_can_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    Service(tmp_path).close()
    tmp_path.chmod(0o755)
    told = CliRunner().invoke(cli.build_app(), ["doctor"]).output
    assert f"FAIL  modes: other users of this machine can read the workspace. Run: chmod 700 {tmp_path}\n" in told
    tmp_path.chmod(0o700)
    assert "ok    modes" in CliRunner().invoke(cli.build_app(), ["doctor"]).output


@pytest.mark.parametrize("target", [".", "..", "../assets", "nowhere", "loop"])
def test_a_bundle_with_a_link_to_a_folder_is_refused(service: Service, bundle: MakeBundle, target: str) -> None:
    """A link to itself passed `open`; a backup then copied it until the disk was full."""
    folder = bundle()
    (folder / "assets" / "loop").symlink_to(target)
    with pytest.raises(ForetellError, match="is a link"):
        service.researcher.open_study(folder, per_condition=1)
    assert [text for text in Bundle(folder).find_damage() if "is a link" in text]


def test_a_link_that_came_later_stops_no_backup_and_no_restore(
    service: Service, bundle: MakeBundle, tmp_path: Path
) -> None:
    folder = bundle()
    service.researcher.open_study(folder, per_condition=1)
    (folder / "assets" / "loop").symlink_to(".")
    saved = backup(service.researcher, tmp_path / "saved").folder
    [copied] = (saved / "bundles").iterdir()
    assert sorted(p.name for p in copied.rglob("*")) == sorted(p.name for p in folder.rglob("*") if p.name != "loop")
    assert restore(saved, tmp_path / "restored") == []
    (copied / "assets" / "loop").symlink_to(".")
    shutil.rmtree(tmp_path / "restored")
    with pytest.raises(ForetellError, match="link to a folder"):
        restore(saved, tmp_path / "restored")


@pytest.mark.parametrize(
    "content", [b"x = " + b"9" * 5000, b"x = " + b"[" * 5000 + b"]" * 5000, b"\xff\xfe\x00", b"[study]\nname = 1\n"]
)
def test_a_bad_study_file_hides_no_other(service: Service, content: bytes) -> None:
    """A number with 5,000 digits, or lists 5,000 deep, took the Studies page down."""
    (service.workspace.home / "studies").mkdir()
    (service.workspace.home / "studies" / "bad.toml").write_bytes(content)
    found = {study.name: study.faults for study in list_studies(service.workspace.home, service.researcher)}
    assert "demo" in found
    assert found["bad"]


def test_a_bundle_that_cannot_be_read_hides_no_other(service: Service, bundle: MakeBundle) -> None:
    for name in ("gone-1", "folder-1"):
        (service.workspace.home / "bundles" / name).mkdir(parents=True)
    (service.workspace.home / "bundles" / "gone-1" / "manifest.json").symlink_to("nowhere")
    (service.workspace.home / "bundles" / "folder-1" / "manifest.json").mkdir()
    assert [path.name for path in bundles(service.workspace.home)] == ["folder-1"]
    found = {study.name: study.faults for study in list_studies(service.workspace.home, service.researcher)}
    assert "cannot be read (Is a directory)" in found["folder"][0]


def test_a_full_disk_is_no_reason_to_move_the_database_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Service(tmp_path).close()

    def fail(connection: object) -> None:
        connection.exec_driver_sql("PRAGMA max_page_count = 1")  # type: ignore[attr-defined]
        connection.exec_driver_sql("CREATE TABLE filler(x)")  # type: ignore[attr-defined]

    monkeypatch.setattr("study.store.database.sqlite.fault", fail)
    with pytest.raises(StoreError, match=r"disk is full\)\. Make room on its disk"):
        Service(tmp_path)
    monkeypatch.undo()
    (tmp_path / "foretell.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError, match="Restore it from a backup"):
        Service(tmp_path)
