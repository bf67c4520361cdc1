"""Bundles and study files of a workspace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.errors import ForetellError
from study.collection.backup import backup, restore
from study.service import Service
from study.store import StoreError
from study.workspace.workspace import bundle_named, bundles, study_files
from tests.conftest import write_bundle


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Two builds of one study, the second in the alphabet being the older, another study, and an unfinished build."""
    for age, (folder, name) in enumerate(
        (("my-study-aa", "my-study"), ("my-study-bb", "my-study"), ("demo-cc", "demo"))
    ):
        path = write_bundle(tmp_path / "bundles" / folder, name=name, seed=age, trials=1, practice=0)
        os.utime(path / "manifest.json", (1_000_000 - age, 1_000_000 - age))
    (tmp_path / "bundles" / "demo-dd" / "units").mkdir(parents=True)
    return tmp_path


def test_the_newest_is_first_and_unfinished_ones_are_not_bundles(home: Path) -> None:
    assert [path.name for path in bundles(home)] == ["my-study-aa", "my-study-bb", "demo-cc"]
    assert bundles(home / "nothing") == []


def test_by_study_name_by_folder_name_by_path(home: Path) -> None:
    assert bundle_named(home, "my-study").folder.name == "my-study-aa"
    assert bundle_named(home, "my-study-bb").folder.name == "my-study-bb"
    assert bundle_named(home, str(home / "bundles" / "demo-cc")).manifest.name == "demo"


@pytest.mark.parametrize("name", ["my", "study", "demo-dd", "", "../bundles"])
def test_what_is_not_built_is_said_with_what_is(home: Path, name: str) -> None:
    with pytest.raises(ForetellError, match="demo, my-study"):
        bundle_named(home, name)


def test_study_files_of_the_project_then_of_the_workspace(home: Path) -> None:
    (home / "studies").mkdir()
    (home / "studies" / "a.toml").touch()
    names = [path.name for path in study_files(home)]
    assert "demo.toml" in names[:-1]
    assert names[-1] == "a.toml"


@pytest.mark.parametrize("name", ["a%20b", "what?", "100%", "a#b", "two words", "é", "a&mode=memory"])
def test_a_workspace_may_have_any_name(tmp_path: Path, name: str) -> None:
    """Catches a path that is written into a URL and parsed again: the database, and all ids, lay in another folder."""
    home = tmp_path / name
    with Service(home) as service:
        service.researcher.note("something", {})
        service.workspace.keep_watch()
        folder = backup(service.researcher, tmp_path / "saved?%20").folder
    assert {path.name for path in home.iterdir()} == {"foretell.db", "identity.db", "foretell.ends", "participants.key"}
    assert [path.name for path in home.iterdir() if path.stat().st_mode & 0o077] == []
    assert restore(folder, tmp_path / f"{name}-again") == []
    assert {path.name for path in tmp_path.iterdir()} == {name, f"{name}-again", "saved?%20"}


def test_a_database_that_an_earlier_version_put_elsewhere_is_named(tmp_path: Path) -> None:
    """Catches an empty database next to the one that a former version made for a folder named ``a%20b``."""
    with Service(tmp_path / "a b"):
        pass
    with pytest.raises(StoreError, match=r"is at .*a b/foretell\.db, where earlier versions put it"):
        Service(tmp_path / "a%20b")
    assert not (tmp_path / "a%20b" / "foretell.db").exists()
