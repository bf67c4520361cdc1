"""The page Models & images as accounts without a shell see it: nothing is removed, copied or found out by a path."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.library import jobs
from dashboard.shared import service
from study.collection.access.permissions import ROLES
from study.participation.refusals import Refusal
from study.workspace.folders import ALLOWED
from tests.conftest import write_bundle
from tests.dashboard.conftest import made
from tests.dashboard.views.library import image, open_library, settled
from tests.dashboard.views.test_members import log_in

STRANGER = "stranger@example.org"
ACCOUNTS = [*(f"{role}@example.org" for role in ROLES), STRANGER]
OUTSIDE = "is outside the folders whose files you may name"


@pytest.fixture
def shared(workspace: Path, tmp_path: Path) -> Path:
    """A study with its stimuli, an administrator's image set and network, and photographs elsewhere."""
    folder = write_bundle(workspace / "bundles" / "demo-0123456789ab", name="demo", trials=2, practice=0, side=8)
    opened = service.get_service().researcher
    opened.open_study(folder, 2)
    for role in ROLES:
        opened.set_member("demo", f"{role}@example.org", role)
    for place in (workspace / "images" / "theirs" / "cat", tmp_path / "elsewhere" / "cat"):
        place.mkdir(parents=True)
        (place / "1.png").write_bytes(image(1))
    (workspace / "models").mkdir()
    (workspace / "models" / "models.txt").write_text("bars:belief\n")
    return workspace


@pytest.mark.parametrize("person", ACCOUNTS)
def test_no_account_removes_what_is_an_administrators(
    shared: Path, monkeypatch: pytest.MonkeyPatch, person: str
) -> None:
    """Catches a button, and an act behind it, by which a viewer removed an administrator's images and network."""
    log_in(monkeypatch, person)
    for part in ("Images", "Networks"):
        app = open_library()
        app.session_state["part"] = part
        made(app.run())
        assert not [button for button in app.button if "Remove" in button.label or button.label == "Apply"]
    door = service.get_service().act_as(person)
    for act, name in ((door.remove_image_set, "theirs"), (door.remove_network, "bars:belief")):
        with pytest.raises(Refusal, match="belongs to an administrator"):
            act(name)


@pytest.mark.parametrize("person", ["viewer@example.org", "manager@example.org", STRANGER])
def test_an_account_that_makes_no_study_has_no_form_and_no_task(
    shared: Path, monkeypatch: pytest.MonkeyPatch, person: str
) -> None:
    """Catches a path of another study's stimuli that an account without a role copied into the library."""
    log_in(monkeypatch, person)
    app = open_library().run()
    assert "Only owners and editors of a study add" in app.info[0].value
    assert not app.file_uploader
    job = jobs.add_task(service.get_service().act_as(person), "mine", lambda: jobs.open_path("/", None)).ask()
    job.wait(300)
    assert "Only owners and editors of a study add" in job.error


def add_path(app: AppTest, path: str) -> str:
    app.run().segmented_control("library_way").set_value("Path on this machine").run()
    app.text_input("library_path").set_value(path).run()
    app.text_input("library_name").set_value("mine").run()
    settled(app.button("library_add").click().run())
    return " ".join(alert.value for alert in app.error)


def test_an_editor_copies_by_a_path_only_from_folders_that_are_allowed(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches stimuli of other studies in the library, and a sentence that tells which paths exist."""
    log_in(monkeypatch, "editor@example.org")
    elsewhere = tmp_path / "elsewhere"
    said = [
        add_path(open_library(), str(path)).replace(path.name, "NAME")
        for path in (shared / "bundles", shared / "images" / ".." / "bundles", elsewhere, tmp_path / "gone")
    ]
    assert all(OUTSIDE in one for one in said)
    assert said[2] == said[3]
    (elsewhere / "link").symlink_to(shared / "bundles")
    (shared / ALLOWED).write_text(f"{elsewhere}\n")
    assert OUTSIDE in add_path(open_library(), str(elsewhere / "link"))
    assert add_path(open_library(), str(elsewhere)) == ""
    assert [path.name for path in (shared / "images" / "mine").rglob("*.png")] == ["1.png"]


def test_a_name_at_hugging_face_opens_no_folder_of_the_server(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches the field of a repository as a way to any folder, also in the process that fetches weights."""
    log_in(monkeypatch, "editor@example.org")
    app = open_library()
    app.session_state["part"] = "Networks"
    app.run()
    app.segmented_control("model_from").set_value("Hugging Face").run()
    said = []
    for name in ("elsewhere", "gone"):
        app.text_input("name_hf").set_value(f"{tmp_path}/{name}").run()
        settled(app.button("library_add_model").click().run())
        said.append(" ".join(alert.value for alert in app.error).replace(name, "NAME"))
    assert OUTSIDE in said[0]
    assert said[0] == said[1]
