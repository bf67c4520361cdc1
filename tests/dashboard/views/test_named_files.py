"""An editor names files of the server in a study file: nothing outside the workspace's folders is opened or run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.errors import ForetellError
from dashboard.shared import service
from study.network.sources import open_sources
from study.plan import studyfiles
from study.plan.draft import StudyDraft
from study.workspace.folders import ALLOWED, find_limits
from tests.conftest import write_bundle
from tests.dashboard.views.conftest import Open
from tests.dashboard.views.test_build_check import checked, errors
from tests.study.studies import TINY

EDITOR = "editor@example.org"
OUTSIDE = "is outside the folders whose files you may name"
CODE = """
from pathlib import Path

Path({mark!r}).write_text("it ran")
from data.scenes.classifier import *

def explain(model, images, targets):
    return images.mean(1)

def rule(image, prediction):
    return True
"""


@pytest.fixture
def tiny(workspace: Path, tmp_path: Path) -> Path:
    """A study with an editor, code of theirs in the workspace and outside of it, and another study's stimuli."""
    path = studyfiles.folder_of(workspace) / "tiny.toml"
    (workspace / "images" / "evil" / "red").mkdir(parents=True)
    path.parent.mkdir()
    path.write_text(TINY)
    code = CODE.format(mark=str(tmp_path / "mark"))
    for place in (workspace / "images" / "evil" / "red" / "evil.py.png", tmp_path / "evil.py"):
        place.write_text(code)
    (tmp_path / "names.txt").write_text("one\ntwo\n")
    write_bundle(workspace / "bundles" / "other-0123456789ab", name="other", trials=2, practice=0, side=8)
    administrator = service.get_service().researcher
    administrator.set_member("tiny", "owner@example.org", "owner")
    administrator.set_member("tiny", EDITOR, "editor")
    return path


def write(path: Path, changes: dict[str, Any], person: str | None = EDITOR) -> None:
    draft = StudyDraft.read(path)
    for place, value in changes.items():
        draft.set(place, value)
    door = service.get_service().researcher if person is None else service.get_service().act_as(person)
    door.save_study_file(path, draft)


ATTACKS: dict[str, dict[str, Any]] = {
    "an upload": {"classifier.model": "../images/evil/red/evil.py.png:build"},
    "an upload by its source": {"classifier.model": "file:../images/evil/red/evil.py.png:build"},
    "an upload as a program": {"classifier.model": "exported:../images/evil/red/evil.py.png"},
    "a file of the server": {"classifier.model": "{tmp}/evil.py:build"},
    "a file by dots": {"classifier.model": "../models/../../evil.py:build"},
    "a file by a link": {"classifier.model": "../images/evil/link/evil.py:build"},
    "names": {"classifier.model": "clip:ViT-B-32?names={tmp}/names.txt"},
    "the workspace's key": {"classifier.model": "clip:ViT-B-32?names=../participants.key"},
    "a folder of weights": {"classifier.model": "hf:{tmp}"},
    "a method": {"saliency.method": "{tmp}/evil.py:explain"},
    "heatmaps": {"saliency.method": "heatmaps:{tmp}"},
    "another study's stimuli": {"sets.pool": {"set": "folder", "path": "../bundles"}},
    "a list": {"sets.pool": {"set": "folder", "path": "../images/evil", "images": "/etc/passwd"}},
    "a prior": {"teaching.prior": "{tmp}/names.txt"},
    "the home of a user": {"teaching.prior": "~root/x"},
}


@pytest.mark.parametrize("changes", ATTACKS.values(), ids=ATTACKS)
def test_an_editor_opens_no_file_outside_the_workspaces_folders(
    tiny: Path, tmp_path: Path, workspace: Path, changes: dict[str, Any]
) -> None:
    """Catches code, lists and stimuli of the server that a study file opens for an account."""
    (workspace / "images" / "evil" / "link").symlink_to(tmp_path)
    write(tiny, _fill(changes, tmp_path))
    with pytest.raises(ForetellError, match=f"{OUTSIDE}|Unknown classifier|no Python file"):
        open_sources(tiny, "cpu")
    assert not (tmp_path / "mark").exists()


def _fill(changes: Any, tmp_path: Path) -> Any:
    if isinstance(changes, dict):
        return {key: _fill(value, tmp_path) for key, value in changes.items()}
    return changes.replace("{tmp}", str(tmp_path))


def test_a_file_of_rules_of_the_server_is_not_run(tiny: Path, tmp_path: Path, workspace: Path) -> None:
    """Catches strata, which open their file only when the trials are planned."""
    from study.building.plan import make_planner

    parameters = {"file": str(tmp_path / "evil.py"), "rule": "rule"}
    write(tiny, {"trials.strata": {"measure": "assertion", "parameters": parameters}})
    with pytest.raises(ForetellError, match=OUTSIDE):
        make_planner(open_sources(tiny, "cpu"), workspace / "cache")
    assert not (tmp_path / "mark").exists()


def test_an_account_is_not_told_which_files_exist(tiny: Path, tmp_path: Path) -> None:
    """Catches a sentence that differs between a file that is there and one that is not."""
    said = []
    for name in ("evil.py", "gone.py"):
        write(tiny, {"classifier.model": f"{tmp_path}/{name}:build"})
        with pytest.raises(ForetellError) as error:
            open_sources(tiny, "cpu")
        said.append(str(error.value).replace(name, "NAME"))
    assert said[0] == said[1]


def test_the_page_checks_for_an_administrator_what_an_editor_wrote_without_running_it(
    tiny: Path, tmp_path: Path, open_page: Open
) -> None:
    """Catches a gate at whoever opens the page: the automatic check ran the editor's file as the administrator."""
    write(tiny, {"classifier.model": f"{tmp_path}/evil.py:build"})
    write(tiny, {"study.title": "Another title"}, None)
    copied = service.get_service().act_as(EDITOR).copy_study(tiny, "copied")
    for path in (tiny, service.get_service().act_as(EDITOR).rename_study(copied, "renamed")):
        app = checked(open_page(study=path.stem, part="Trials"))
        assert OUTSIDE in errors(app)
    assert not (tmp_path / "mark").exists()


def test_what_an_administrator_names_is_opened_whoever_changes_the_rest(tiny: Path, tmp_path: Path) -> None:
    """Catches a gate that closes a study of an administrator's own network for its editors."""
    write(tiny, {"classifier.model": f"{tmp_path}/evil.py:build"}, None)
    write(tiny, {"study.title": "Another title"})
    assert open_sources(tiny, "cpu").classifier.categories
    assert (tmp_path / "mark").exists()


def test_an_editor_names_what_is_in_the_workspace_or_in_an_allowed_folder(
    tiny: Path, tmp_path: Path, workspace: Path
) -> None:
    """Catches a gate that is closed to networks of the workspace; a folder that is allowed opens data, and no code."""
    (workspace / "models").mkdir()
    (workspace / "models" / "net.py").write_text("from data.scenes.classifier import *\n")
    (workspace / ALLOWED).write_text(f"# ours\n{tmp_path}\n")
    heatmaps = tmp_path / "heatmaps"
    heatmaps.mkdir()
    named = {"classifier.model": "../models/net.py:build", "saliency.method": f"heatmaps:{heatmaps}"}
    write(tiny, {**named, "saliency.parameters": {}})
    assert open_sources(tiny, "cpu").method.__name__ == "heatmaps:heatmaps"
    for closed in (f"{tmp_path}/evil.py:build", f"clip:ViT-B-32?names={workspace}/participants.key"):
        write(tiny, {"classifier.model": closed})
        with pytest.raises(ForetellError, match=OUTSIDE):
            open_sources(tiny, "cpu")


def test_lists_of_images_that_design_writes_are_open_and_other_studies_files_are_not(
    tiny: Path, workspace: Path
) -> None:
    """Catches a divided image set that its editor cannot build, and a study file read as a list of names."""
    lists = tiny.with_name("tiny.images")
    lists.mkdir()
    limits = find_limits(workspace)
    assert limits.allows(lists / "pool.txt")
    for closed in (
        tiny,
        tiny.with_name("tiny.typed.json"),
        workspace / "foretell.db",
        workspace / "bundles",
        workspace,
    ):
        assert not limits.allows(closed)
