"""A backup keeps study files, and with each the list of what accounts typed into it: without it they are trusted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.errors import ForetellError
from dashboard.cli import main as cli
from study.collection.backup import backup, restore
from study.network.sources import open_sources
from study.plan.draft import StudyDraft
from study.plan.studyfiles import archive_study, copy_study, list_archived, rename_study
from study.plan.typed import ENDING
from study.service import Service
from study.workspace.workspace import VARIABLE
from tests.study.studies import TINY

EDITOR = "editor@example.org"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A workspace with a study file, into which an editor typed code of theirs outside of it, and an archived copy."""
    home = tmp_path / "home"
    mark = tmp_path / "it ran"
    (tmp_path / "evil.py").write_text(f"open({str(mark)!r}, 'w').close()\nfrom data.scenes.classifier import *\n")
    with Service(home) as service:
        path = home / "studies" / "tiny.toml"
        path.parent.mkdir()
        path.write_text(TINY)
        service.researcher.set_member("tiny", "owner@example.org", "owner")
        service.researcher.set_member("tiny", EDITOR, "editor")
        draft = StudyDraft.read(path)
        draft.set("classifier.model", f"{tmp_path / 'evil.py'}:build")
        service.act_as(EDITOR).save_study_file(path, draft)
        archive_study(copy_study(path, home, "older"))
    return home


def save(home: Path, folder: Path) -> Path:
    with Service(home) as service:
        return backup(service.researcher, folder).folder


def require_refused(path: Path, mark: Path) -> None:
    with pytest.raises(ForetellError, match="is outside the folders whose files you may name"):
        open_sources(path)
    assert not mark.exists()


def test_what_an_editor_typed_is_not_run_from_a_restored_workspace(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches study files that are lost, and code of an editor that a restored workspace takes for its owner's."""
    monkeypatch.setenv(VARIABLE, str(home))
    run = CliRunner().invoke
    assert run(cli.build_app(), ["backup", str(tmp_path / "saved")]).exit_code == 0
    shutil.move(home, tmp_path / "gone")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "new"))
    assert run(cli.build_app(), ["restore", str(tmp_path / "saved")]).exit_code == 0
    [archived] = list_archived(tmp_path / "new")
    for path in (tmp_path / "new" / "studies" / "tiny.toml", archived):
        former = tmp_path / "gone" / path.relative_to(tmp_path / "new")
        assert path.read_bytes() == former.read_bytes()
        require_refused(path, tmp_path / "it ran")


def test_a_restore_replaces_no_study_file(home: Path, tmp_path: Path) -> None:
    """Catches a study file that is overwritten, and a restore that is refused half done."""
    saved, other = save(home, tmp_path / "saved"), tmp_path / "other"
    place = other / "studies" / "archive" / "older.toml"
    place.parent.mkdir(parents=True)
    place.write_text(TINY)
    with pytest.raises(ForetellError, match=r"older\.toml already exists, and the backup has another one\. Move it"):
        restore(saved, other)
    assert [path.name for path in other.iterdir()] == ["studies"]
    place.write_bytes((saved / "studies" / "archive" / "older.toml").read_bytes())
    assert restore(saved, other) == []
    require_refused(place, tmp_path / "it ran")


def test_a_link_in_a_backup_brings_no_file_of_the_machine(home: Path, tmp_path: Path) -> None:
    """Catches a foreign backup whose study file is a link to a secret, which a page would then show."""
    saved = save(home, tmp_path / "saved")
    (tmp_path / "secret").write_text("secret")
    (saved / "studies" / "link.toml").symlink_to(tmp_path / "secret")
    assert restore(saved, tmp_path / "other") == []
    assert not (tmp_path / "other" / "studies" / "link.toml").exists()


@pytest.mark.parametrize("when", [1, 2, 3, 4, 5, 6])
def test_a_study_renamed_during_a_backup_keeps_its_list(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: int
) -> None:
    """Catches a copy of a study file whose list was moved between the copies of the two."""
    copy, calls = shutil.copyfile, []

    def copy_meanwhile(source: Path, target: Path, **given: bool) -> object:
        if Path(source).is_relative_to(home / "studies"):
            calls.append(source)
            if len(calls) == when:
                rename_study(home / "studies" / "tiny.toml", home, "later")
        return copy(source, target, **given)

    monkeypatch.setattr(shutil, "copyfile", copy_meanwhile)
    saved = save(home, tmp_path / "saved")
    assert len(calls) >= when
    for path in (saved / "studies").rglob("*.toml"):
        assert path.with_name(f"{path.stem}{ENDING}").is_file(), path


def test_an_unreadable_study_file_is_a_fault(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches one file without permission that keeps all responses from being saved, and its copy without a list."""
    copy: Callable[..., object] = shutil.copyfile

    def refuse(source: Path, target: Path, **given: bool) -> object:
        if Path(source).name == "tiny.toml":
            raise PermissionError(13, os.strerror(13), str(source))
        return copy(source, target, **given)

    monkeypatch.setattr(shutil, "copyfile", refuse)
    with Service(home) as service:
        made = backup(service.researcher, tmp_path / "saved")
    [fault] = made.faults
    assert fault == (
        f"{home / 'studies' / 'tiny.toml'} cannot be copied (Permission denied). Make it readable, and back up again."
    )
    assert [path.name for path in (made.folder / "studies").rglob("*.toml")] == ["older.toml"]
