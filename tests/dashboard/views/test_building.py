"""Building and checking a study on the page Studies."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from core.errors import ForetellError
from dashboard.shared.jobs import pool
from dashboard.shared.keys import digest
from dashboard.studies import building, page
from dashboard.studies.workspace_studies import list_studies
from study.building.check import StudyCheck
from study.bundle import Bundle
from tests.conftest import write_bundle
from tests.dashboard.conftest import PATIENCE_S, made
from tests.dashboard.views.conftest import Open, press

TINY = """
[study]
name = "small"
title = "Small"
[classifier]
model = "scenes"
[sets.pool]
set = "scenes"
split = "pool"
size = 96
[sets.standard]
set = "scenes"
split = "standard"
size = 320
[sets.adversarial]
set = "scenes"
split = "adversarial"
size = 80
[trials]
categories = 1
practice = 0
[saliency]
method = "gradient"
[teaching]
policy = "best"
damping = 0.001
sets = 5
"""


@pytest.mark.slow
def test_build_from_the_page(open_studies: Open, workspace: Path) -> None:
    (workspace / "studies").mkdir()
    file = workspace / "studies" / "small.toml"
    file.write_text(TINY)
    app = made(press(open_studies(study="small"), "Build"))
    assert not app.error
    assert "blue-badge[built]" in app.title[0].value
    assert ["The consent" in warning.value for warning in app.warning] == [True]  # it is asked for on opening
    file.write_text(TINY.replace("sets = 5", "sets = 6"))
    assert "has changed since" in open_studies(study="small").warning[0].value


def test_a_build_that_has_ended_is_shown_by_one_run_of_the_page(
    open_studies: Open, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a run of the page that ends in another run: a busy browser misses both and keeps the progress bar."""
    (workspace / "studies").mkdir()
    (workspace / "studies" / "small.toml").write_text(TINY)
    finish = threading.Event()

    def build(*_: object, **__: object) -> Bundle:
        assert finish.wait(PATIENCE_S)
        return Bundle(write_bundle(workspace / "bundles" / "small-0123456789ab", name="small"))

    monkeypatch.setattr(building, "build_apart", build)
    app = press(open_studies(study="small"), "Build")
    assert len(app.get("progress")) == 1
    assert "orange-badge[being built]" in app.title[0].value
    job = pool().find(digest("build", str(workspace), "small"))
    assert job is not None
    runs: list[object] = []
    monkeypatch.setattr(page, "list_studies", lambda *given: runs.append(given) or list_studies(*given))
    finish.set()
    assert job.wait(PATIENCE_S)
    app.run()
    assert not app.exception
    assert not app.get("progress")
    assert "badge[built]" in app.title[0].value
    assert len(runs) == 1
    assert pool().find(job.key) is None


def test_a_build_that_failed_is_reported_until_the_next_one(
    open_studies: Open, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a reason that is gone with the next click, and one that another build leaves there."""
    (workspace / "studies").mkdir()
    (workspace / "studies" / "small.toml").write_text(TINY)

    def build(*_: object, **__: object) -> Bundle:
        raise ForetellError("The images are gone.")

    monkeypatch.setattr(building, "build_apart", build)
    app = made(press(open_studies(study="small"), "Build"))
    for _ in range(2):
        assert [error.value for error in app.error] == ["The images are gone."]
        app.run()
    assert [error.value for error in open_studies(study="small").error] == ["The images are gone."]


@pytest.mark.slow
def test_check_from_the_page_says_what_the_images_allow(open_studies: Open, workspace: Path) -> None:
    """A study that wants more categories than its images allow: the reason, the counts and what to add, no build."""
    (workspace / "studies").mkdir()
    (workspace / "studies" / "small.toml").write_text(TINY.replace("categories = 1", "categories = 16"))
    app = made(press(open_studies(study="small"), "Check"))
    assert "You ask for 16 categories, but the images allow only" in app.error[0].value
    assert "or add images: " in app.error[0].value
    counts = app.dataframe[0].value
    assert len(counts) == 16
    assert (counts["missing"] != "").any()
    assert "Largest study that fits: " in app.caption[-1].value
    assert not (workspace / "bundles").exists()
    assert [b.label for b in app.button][:2] == ["Build", "Check"]


def test_the_result_of_a_check_is_folded(open_studies: Open, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches the counts of an earlier check above what one came for."""
    (workspace / "studies").mkdir()
    (workspace / "studies" / "small.toml").write_text(TINY)
    checked = StudyCheck(sets=("pool: 96 images",), notes=(), obstacles=(), supply=None, trials=0)
    monkeypatch.setattr(building, "check", lambda *_, **__: checked)
    app = made(press(open_studies(study="small"), "Check"))
    (folded,) = [part for part in app.expander if "can be built" in part.label]
    assert (folded.proto.expanded, [text.value for text in folded.caption]) == (False, ["pool: 96 images"])
