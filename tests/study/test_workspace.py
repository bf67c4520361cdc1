"""Bundles and study files of a workspace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.errors import ForetellError
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
