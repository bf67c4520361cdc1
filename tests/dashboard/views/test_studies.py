"""The page Studies, run as Streamlit runs it over a real workspace."""

from __future__ import annotations

import csv
import functools
import json
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from core.errors import ForetellError
from dashboard.shared import service
from dashboard.shared.jobs import pool
from dashboard.shared.keys import digest
from dashboard.studies import building, exporting, page, workspace_studies
from dashboard.studies.workspace_studies import list_studies
from study.bundle import Bundle
from tests.conftest import write_bundle
from tests.dashboard.conftest import PATIENCE_S, made
from tests.dashboard.views.conftest import open_by_link


def script() -> None:
    from dashboard.studies import page as studies

    studies.page()


Open = Callable[..., AppTest]


@pytest.fixture
def opened(workspace: Path) -> Open:
    """``opened(study="tiny", section="Trials")``: the page as a link opens it."""

    return functools.partial(open_by_link, script)


@pytest.fixture
def tiny(workspace: Path) -> Path:
    return write_bundle(workspace / "bundles" / "tiny-0123456789ab", name="tiny", texts={"title": "A *tiny* study"})


def press(app: AppTest, label: str) -> AppTest:
    app = next(button for button in app.button if button.label == label).click().run()
    assert not app.exception
    return app


def test_the_demo_is_listed_before_it_is_built(opened: Open) -> None:
    app = opened(study="demo")
    assert not app.exception
    assert "gray-badge[not built]" in app.header[0].value
    assert [b.label for b in app.button] == ["Build", "Check"]
    assert app.button_group(key="section").options == ["Collection", "Members"]


def test_open_add_places_close(opened: Open, tiny: Path) -> None:
    app = opened(study="tiny")
    assert app.header[0].value == r"A \*tiny\* study :blue-badge[built]"
    assert not app.get("link_button")
    app.number_input(key="people_tiny").set_value(2)
    press(app, "Start a collection")
    assert "green-badge[open]" in app.header[0].value
    assert app.code[0].value == "http://127.0.0.1:8501/run/tiny"
    previews = [link.proto.url for link in app.get("link_button")]
    conditions = ("none", "saliency", "examples", "both")
    assert previews == [f"http://127.0.0.1:8501/run/tiny?preview={c}" for c in conditions]
    assert list(app.table[-1].value["Quota"]) == [2, 2, 2, 2]
    app.number_input(key="people_tiny").set_value(3)
    press(app, "Raise the quota")
    assert list(app.table[-1].value["Quota"]) == [3, 3, 3, 3]
    press(app, "Close")
    assert "gray-badge[closed]" in app.header[0].value
    assert not app.get("link_button")
    assert list(app.table[-1].value["Quota"]) == [3, 3, 3, 3]  # what was collected is still there
    assert any("Reopen it to go on" in info.value for info in app.info)
    press(app, "Reopen")
    assert "green-badge[open]" in app.header[0].value


def test_a_newer_build_can_supersede_the_open_one(opened: Open, tiny: Path, workspace: Path) -> None:
    service.get_service().researcher.open_study(tiny, 1)
    write_bundle(workspace / "bundles" / "tiny-ffff", name="tiny", seed=8)
    app = opened(study="tiny")
    assert any("newer build" in warning.value for warning in app.warning)
    press(app, "Open the new version")
    assert not app.warning
    assert [status.state for status in service.get_service().researcher.studies()] == ["superseded", "open"]


def test_participants_and_simulated_people_are_counted_apart(opened: Open, tiny: Path) -> None:
    service.get_service().researcher.open_study(tiny, 2)
    token = service.get_service().participant.begin("tiny")
    service.get_service().participant.consent(token, True)
    service.get_service().participant.ready(token)
    app = opened(study="tiny", section="Simulate")
    app.number_input(key="simulate_people").set_value(8)
    press(app, "Simulate")
    assert app.success[0].value == "120 new responses."
    press(app, "Simulate")
    assert "nothing was added" in app.success[0].value
    app.button_group(key="section").select("Collection").run()
    people = app.table[-1].value
    assert people["Simulated"].sum() == 8
    assert people["Started"].sum() == 1
    assert people["Completed"].sum() == 0


def test_an_empty_mixture_is_one_sentence(opened: Open, tiny: Path) -> None:
    service.get_service().researcher.open_study(tiny, 2)
    app = opened(study="tiny", section="Simulate")
    for slider in app.slider:
        slider.set_value(0.0)
    press(app, "Simulate")
    assert len(app.error) == 1
    assert app.error[0].value.startswith("The mixture is empty")


def test_trials_show_everything_known(opened: Open, tiny: Path) -> None:
    app = opened(study="tiny", section="Trials")
    assert not app.exception
    assert len(_trials(app)) == 6
    known = dict(_trials(app)[0].to_numpy().tolist())
    listed = workspace_studies.list_studies(tiny.parents[1], service.get_service().researcher)
    (bundle,) = [one.bundle for one in listed if one.name == "tiny"]
    assert bundle is not None
    trial = bundle.manifest.trials[0]
    assert known["True class"] == trial.truth
    assert known["Prediction"] == f"{trial.target} (75.0%)"
    assert known["Learner's P after the examples"] == "0.900"
    assert known["Effective sample size"] == "300"
    assert "Relevance of the map" not in known
    app.button_group(key="trial_kind").select("AI right").run()
    assert len(_trials(app)) == 4
    assert all("AI right" in table.to_string() for table in _trials(app))


def test_trials_of_a_placebo_show_what_participants_see(opened: Open, workspace: Path) -> None:
    """The pictures on the page, by the bundle's own table of what the condition shows in each place."""
    conditions = ("none", "saliency", "random_maps", "wrong_examples")
    folder = workspace / "bundles" / "fair-0123456789ab"
    write_bundle(folder, name="fair", conditions=conditions, trials=3, practice=0)
    app = opened(study="fair", section="Trials")
    assert app.selectbox(key="trial_placebo").options == ["True explanations", "random_maps", "wrong_examples"]
    trials = Bundle(folder).manifest.trials
    for name, per_trial in (("random_maps", 2), ("wrong_examples", 5)):
        app.selectbox(key="trial_placebo").select(name).run()
        assert not app.exception
        expected = [p for trial in trials for p in (trial.assets.target, *trial.assets.by_condition[name].every)]
        assert len(expected) == 3 * per_trial
        assert _pictures(app) == _drawn([str(folder / "assets" / f"{asset}.webp") for asset in expected])


def _drawn(paths: list[str]) -> list[str]:
    """What Streamlit calls these files when it shows them: names by their content."""

    def reference(paths: list[str]) -> None:
        import streamlit as st

        for path in paths:
            st.image(path, width="stretch")

    return _pictures(AppTest.from_function(reference, args=(paths,)).run())


def _pictures(app: AppTest) -> list[str]:
    return [url for image in app.get("image") for url in image.value]  # type: ignore[attr-defined]


def _trials(app: AppTest) -> list[pd.DataFrame]:
    """The tables of facts."""
    return [table.value for table in app.table]


def test_export(opened: Open, tiny: Path) -> None:
    app = opened(study="tiny", section="Export")
    assert app.info[0].value == "No responses have been collected yet."
    service.get_service().researcher.open_study(tiny, 2)
    app = opened(study="tiny", section="Simulate")
    app.number_input(key="simulate_people").set_value(4)
    press(app, "Simulate")
    app = opened(study="tiny", section="Export")
    assert not app.exception
    assert [b.label for b in app.download_button] == ["Responses (CSV)", "Data dictionary (JSON)"]
    researcher = service.get_service().researcher
    rows = list(csv.DictReader(exporting._file(researcher, "tiny", ["sim"], "tiny.csv").decode().splitlines()))
    assert len(rows) == 4 * 12
    dictionary = json.loads(exporting._file(researcher, "tiny", ["sim"], "data-dictionary.json"))
    assert set(dictionary) == set(rows[0])


def test_an_unknown_study_is_one_sentence(opened: Open, tiny: Path) -> None:
    app = opened(study="nothing")
    assert not app.exception
    assert app.error[0].value.startswith("There is no study nothing.")


def test_a_damaged_bundle_hides_no_other(opened: Open, tiny: Path, workspace: Path) -> None:
    broken = write_bundle(workspace / "bundles" / "broken-00", name="broken")
    manifest = broken / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"seed":7', b'"seed":8'))
    app = opened(study="broken")
    assert not app.exception
    assert "was changed since the study was frozen" in app.error[0].value
    assert set(app.selectbox(key="study").options) >= {"broken", "demo", "tiny"}
    drawn = app.get("html")[0].proto.body
    assert re.findall(r'<a href="[?]study=([^"]+)"', drawn) == app.selectbox(key="study").options
    assert re.findall(r'aria-current="page">([^<]+)', drawn) == ["broken"]
    assert not opened(study="tiny").error


def test_a_image_that_changed_cannot_be_opened(opened: Open, tiny: Path) -> None:
    asset = next((tiny / "assets").iterdir())
    asset.write_bytes(asset.read_bytes() + b"x")
    app = press(opened(study="tiny"), "Start a collection")
    assert "was changed since the study was frozen" in app.error[0].value
    assert service.get_service().researcher.studies() == []


def test_faults_of_a_study_file_are_all_said(opened: Open, workspace: Path) -> None:
    (workspace / "studies").mkdir()
    (workspace / "studies" / "mine.toml").write_text(
        '[study]\nname = "Mine!"\ntitle = "T"\n[classifier]\nmodle = "x"\n'
    )
    app = opened(study="mine")
    assert not app.exception
    fault = app.error[0].value
    assert "study.name" in fault
    assert "classifier.modle" in fault
    assert "sets" in fault


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
def test_build_from_the_page(opened: Open, workspace: Path) -> None:
    (workspace / "studies").mkdir()
    file = workspace / "studies" / "small.toml"
    file.write_text(TINY)
    app = made(press(opened(study="small"), "Build"))
    assert not app.error
    assert "blue-badge[built]" in app.header[0].value
    assert not app.warning
    file.write_text(TINY.replace("sets = 5", "sets = 6"))
    assert "has changed since" in opened(study="small").warning[0].value


def test_a_build_that_has_ended_is_shown_by_one_run_of_the_page(
    opened: Open, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a run of the page that ends in another run: a busy browser misses both and keeps the progress bar."""
    (workspace / "studies").mkdir()
    (workspace / "studies" / "small.toml").write_text(TINY)
    finish = threading.Event()

    def build(*_: object, **__: object) -> Bundle:
        assert finish.wait(PATIENCE_S)
        return Bundle(write_bundle(workspace / "bundles" / "small-0123456789ab", name="small"))

    monkeypatch.setattr(building, "build_with", build)
    app = press(opened(study="small"), "Build")
    assert len(app.get("progress")) == 1
    job = pool().find(digest("build", str(workspace), "small"))
    assert job is not None
    runs: list[object] = []
    monkeypatch.setattr(page, "list_studies", lambda *given: runs.append(given) or list_studies(*given))
    finish.set()
    assert job.wait(PATIENCE_S)
    app.run()
    assert not app.exception
    assert not app.get("progress")
    assert "badge[built]" in app.header[0].value
    assert len(runs) == 1
    assert pool().find(job.key) is None


def test_a_build_that_failed_is_reported_until_the_next_one(
    opened: Open, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a reason that is gone with the next click, and one that another build leaves there."""
    (workspace / "studies").mkdir()
    (workspace / "studies" / "small.toml").write_text(TINY)

    def build(*_: object, **__: object) -> Bundle:
        raise ForetellError("The images are gone.")

    monkeypatch.setattr(building, "build_with", build)
    app = made(press(opened(study="small"), "Build"))
    for _ in range(2):
        assert [error.value for error in app.error] == ["The images are gone."]
        app.run()
    assert [error.value for error in opened(study="small").error] == ["The images are gone."]


@pytest.mark.slow
def test_check_from_the_page_says_what_the_images_allow(opened: Open, workspace: Path) -> None:
    """A study that wants more categories than its images allow: the reason, the counts and what to add, no build."""
    (workspace / "studies").mkdir()
    (workspace / "studies" / "small.toml").write_text(TINY.replace("categories = 1", "categories = 16"))
    app = made(press(opened(study="small"), "Check"))
    assert "You ask for 16 categories, but the images allow only" in app.error[0].value
    assert "or add images: " in app.error[0].value
    counts = app.dataframe[0].value
    assert len(counts) == 16
    assert (counts["missing"] != "").any()
    assert "Largest study that fits: " in app.caption[-1].value
    assert not (workspace / "bundles").exists()
    assert [b.label for b in app.button][:2] == ["Build", "Check"]
