"""The start page, run by the entry script with its navigation."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.errors import ForetellError
from core.types import Progress
from dashboard.pages import PAGES
from dashboard.shared import service
from dashboard.shared.jobs import pool
from dashboard.shared.keys import build_key
from dashboard.studies.workspace_studies import find_next_action, list_studies
from study.plan.templates import TEMPLATES
from study.simulate import simulate
from tests.conftest import ROOT, write_bundle
from tests.dashboard.conftest import PATIENCE_S

STUDY_FILE = """[study]
name = "mine"
title = "Mine"
[classifier]
model = "scenes"
[sets.pool]
set = "scenes"
split = "pool"
[sets.standard]
set = "scenes"
split = "standard"
[sets.adversarial]
set = "scenes"
split = "adversarial"
"""


@pytest.fixture
def app(workspace: Path) -> AppTest:
    return AppTest.from_file(str(ROOT / "dashboard" / "pages.py"))


def links(app: AppTest) -> list[Any]:
    assert not app.exception
    return [link.proto for link in app.get("page_link")]


def next_actions(app: AppTest) -> dict[str, tuple[str, str, str]]:
    """Of each listed study the label of its link, the page and the query."""
    names = [text.value.split("**")[1] for text in app.markdown if "-badge[" in text.value]
    shown = [link for link in links(app) if link.icon_position]
    return {
        name: (link.label.split("**")[1], link.page, link.query_string) for name, link in zip(names, shown, strict=True)
    }


def test_the_steps_are_in_the_order_of_a_study(app: AppTest) -> None:
    """Catches cards in another order than the work, and a page that cannot be reached at all."""
    steps = [link.page for link in links(app.run()) if not link.icon_position]
    assert steps == ["library", "explore", "design", "power", "studies", "results"]
    assert {"monitor", "teaching"} <= set(PAGES)


def test_the_demo_is_offered_only_when_it_is_open(app: AppTest, workspace: Path) -> None:
    """Catches a link to a preview that does not exist, and no word about how to get one."""
    assert not app.run().get("link_button")
    assert any("python foretell.py" in text.value for text in app.markdown)
    service.get_service().researcher.open_study(write_bundle(workspace / "bundles" / "demo-00", name="demo"), 2)
    (button,) = app.run().get("link_button")
    assert button.proto.url == "/run/demo?preview=both"
    service.get_service().researcher.close_study("demo")
    assert not app.run().get("link_button")


def test_the_demo_is_followed_while_it_is_prepared(app: AppTest, workspace: Path) -> None:
    """Catches a page that sends one away to build what is being built, and a bar that stays when it is ready."""
    finish = threading.Event()

    def prepare(progress: Progress) -> None:
        while not finish.wait(0.01):
            progress(40, 100, "explaining trials, 9 of 33")
        service.get_service().researcher.open_study(write_bundle(workspace / "bundles" / "demo-00", name="demo"), 2)

    job = pool().ask(build_key(workspace, "demo"), prepare)
    while not job.share:
        job.wait(0.01)
    app.run()
    assert [bar.value for bar in app.get("progress")] == [40]
    assert any("The demo study is being prepared" in text.value for text in app.markdown)
    assert not any("python foretell.py" in text.value for text in app.markdown)
    finish.set()
    assert job.wait(PATIENCE_S)
    assert len(app.run().get("link_button")) == 1
    assert not app.get("progress")


def test_a_demo_that_failed_says_why(app: AppTest, workspace: Path) -> None:
    """Catches a demo that never comes and no word about it."""

    def fail(progress: Progress) -> None:
        raise ForetellError("The disk is full.")

    assert pool().ask(build_key(workspace, "demo"), fail).wait(PATIENCE_S)
    (error,) = app.run().error
    assert error.value.startswith("The demo study is not ready. The disk is full. Start Foretell again")


def test_every_state_has_its_next_action(app: AppTest, workspace: Path) -> None:
    """Catches a study that is listed without what comes next, or with a link to another study."""
    researcher = service.get_service().researcher
    for name in ("built", "open", "paused", "ended", "unused"):
        folder = write_bundle(workspace / "bundles" / f"{name}-00", name=name)
        if name != "built":
            researcher.open_study(folder, 2)
    researcher.pause_study("paused")
    simulate(service.get_service(), "ended", 3, {"guesser": 1.0}, 0)
    for name in ("ended", "unused"):
        researcher.close_study(name)
    (workspace / "studies").mkdir()
    (workspace / "studies" / "mine.toml").write_text(STUDY_FILE, encoding="utf-8")
    (workspace / "studies" / "broken.toml").write_text("[study\n", encoding="utf-8")
    shown = next_actions(app.run())
    expected = {
        "built": ("Preview and open it", "studies", "study=built"),
        "open": ("Monitor it", "monitor", "study=open"),
        "paused": ("Resume it", "monitor", "study=paused"),
        "ended": ("See the results", "results", "results_source=ended"),
        "unused": ("See the results", "results", ""),
        "mine": ("Build it", "studies", "study=mine"),
        "broken": ("See what is wrong", "studies", "study=broken"),
    }
    assert {name: shown[name] for name in expected} == expected
    assert any("broken.toml is not valid TOML" in text.value for text in app.markdown)


def test_own_studies_are_before_the_examples_which_say_what_they_show(app: AppTest, workspace: Path) -> None:
    """Catches four rows of one title, an own study among studies that nobody here made, and no link to the first."""
    assert any(text.value.startswith("None yet.") for text in app.run().caption)
    assert [link.page for link in links(app) if link.label == ":primary[**Design a study**]"] == ["design"]
    (workspace / "studies").mkdir()
    (workspace / "studies" / "mine.toml").write_text(STUDY_FILE, encoding="utf-8")  # "mine" is after "demo"
    assert list(next_actions(app.run())) == ["mine", *TEMPLATES]
    said = [text.value for text in app.caption]
    assert not any(text.startswith("None yet.") for text in said)
    assert {"Mine", "The paper's study: ResNet-50 and ImageNet"} <= set(said)
    assert [one.value for one in app.header] == ["Your studies", "Examples"]
    (workspace / "studies" / "demo.toml").write_text(STUDY_FILE.replace("mine", "demo"), encoding="utf-8")
    assert [study.name for study in list_studies(workspace, service.get_service().researcher)][:2] == ["demo", "mine"]


def test_a_broken_file_does_not_hide_a_running_study(workspace: Path) -> None:
    """Catches a study with participants in it whose only offered action is to correct its file."""
    service.get_service().researcher.open_study(write_bundle(workspace / "bundles" / "demo-00", name="aquarium"), 2)
    (workspace / "studies").mkdir()
    (workspace / "studies" / "aquarium.toml").write_text("[study\n", encoding="utf-8")
    studies = list_studies(workspace, service.get_service().researcher)
    (found,) = [study for study in studies if study.name == "aquarium"]
    assert found.faults
    assert find_next_action(found).page == "monitor"


def test_a_changed_file_is_built_again(workspace: Path) -> None:
    """Catches an outdated build that is offered for opening."""
    write_bundle(workspace / "bundles" / "mine-00", name="mine")
    (workspace / "studies").mkdir()
    (workspace / "studies" / "mine.toml").write_text(STUDY_FILE, encoding="utf-8")
    studies = list_studies(workspace, service.get_service().researcher)
    (found,) = [study for study in studies if study.name == "mine"]
    assert find_next_action(found).label == "Build it again"


def test_simulated_participants_are_named_as_such(app: AppTest, workspace: Path) -> None:
    """Catches simulated participants that are counted as participants."""
    service.get_service().researcher.open_study(write_bundle(workspace / "bundles" / "demo-00", name="demo"), 2)
    simulate(service.get_service(), "demo", 3, {"guesser": 1.0}, 0)
    assert any("0 participants completed it · 3 simulated (not evidence)" in text.value for text in app.run().caption)


def test_the_first_content_of_home_needs_no_torch() -> None:
    """Catches seconds of imports before the picture and the cards: studies are read after them."""
    run = "import dashboard.home.page, dashboard.home.helping, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", run], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_help_says_how_to_build_the_documentation(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a Help page that names no way to the documentation."""

    def page() -> None:
        from dashboard.home import helping

        helping.page()

    app = AppTest.from_function(page).run()
    assert not app.exception
    said = " ".join([text.value for text in app.markdown] + [code.value for code in app.code])
    assert "python foretell.py docs" in said or "/docs/index.html" in said
    assert "python foretell.py doctor" in said
