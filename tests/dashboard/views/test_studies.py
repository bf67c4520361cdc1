"""The page Studies, run as Streamlit runs it over a real workspace."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.shared import service
from dashboard.studies import exporting, workspace_studies
from study.bundle import Bundle
from tests.conftest import write_bundle
from tests.dashboard.views.conftest import Open, press

CONTACT = {"contact": {"researcher": "Ada", "email": "ada@uni.edu", "board": "The board"}}


@pytest.fixture
def tiny(workspace: Path) -> Path:
    texts = {"title": "A *tiny* study"}
    return write_bundle(workspace / "bundles" / "tiny-0123456789ab", name="tiny", texts=texts, config=CONTACT)


def test_the_demo_is_listed_before_it_is_built(open_studies: Open) -> None:
    app = open_studies(study="demo")
    assert not app.exception
    assert "gray-badge[not built]" in app.title[0].value
    assert [b.label for b in app.button] == ["Build", "Check"]
    assert app.button_group(key="section").options == ["Collection", "Members"]


def test_open_add_places_close(open_studies: Open, tiny: Path) -> None:
    app = open_studies(study="tiny")
    assert app.title[0].value == r"A \*tiny\* study :blue-badge[built]"
    assert list_previews(app) == PREVIEWS
    for refused in (0, 10_001):
        app.number_input[0].set_value(refused)
        press(app, "Open to participants")
        assert "enter a number from 1 to 10,000" in app.error[0].value
        assert "blue-badge[built]" in app.title[0].value
    app.number_input[0].set_value(2).run()
    assert any("2 participants per condition (8 in total)?** The quota can be raised" in m.value for m in app.markdown)
    press(app, "Open to participants")
    assert "green-badge[open]" in app.title[0].value
    assert app.code[0].value == "http://127.0.0.1:8501/run/tiny"
    assert list_previews(app) == PREVIEWS
    assert list(app.table[-1].value["Quota"]) == [2, 2, 2, 2]
    app.number_input[0].set_value(3)
    press(app, "Raise the quota")
    assert list(app.table[-1].value["Quota"]) == [3, 3, 3, 3]
    press(app, "Close the study")
    assert "gray-badge[closed]" in app.title[0].value
    assert list_previews(app) == PREVIEWS
    assert list(app.table[-1].value["Quota"]) == [3, 3, 3, 3]  # what was collected is still there
    assert any("Reopen it to go on" in info.value for info in app.info)
    press(app, "Open to participants")
    assert "green-badge[open]" in app.title[0].value
    assert list(app.table[-1].value["Quota"]) == [3, 3, 3, 3]


PREVIEWS = [f"http://127.0.0.1:8501/run/tiny?preview={c}" for c in ("none", "saliency", "examples", "both")]


def list_previews(app: AppTest) -> list[str]:
    return [link.proto.url for link in app.get("link_button")]


def test_a_quota_that_is_not_raised_is_said(open_studies: Open, tiny: Path) -> None:
    """Catches a button that does nothing and says nothing, and a number that is not the quota and becomes it by a
    click.
    """
    service.get_service().researcher.open_study(tiny, 4)
    app = open_studies(study="tiny")
    assert (app.number_input[0].value, app.number_input[0].label) == (4, "New quota per condition (now 4)")
    for people in (4, 3):
        app.number_input[0].set_value(people)
        press(app, "Raise the quota")
        assert app.error[0].value.startswith("The quota is 4 per condition already")
    app.number_input[0].set_value(6)
    press(app, "Raise the quota")
    assert [said.value for said in app.success] == ["The study is open. Quota per condition: 6."]
    assert (app.number_input[0].value, list(app.table[-1].value["Quota"])) == (6, [6, 6, 6, 6])


def test_the_preview_is_of_the_newest_build(open_studies: Open, tiny: Path, workspace: Path) -> None:
    """Catches links to conditions of the open version that the newer build, which they preview, does not have."""
    service.get_service().researcher.open_study(tiny, 1)
    write_bundle(workspace / "bundles" / "tiny-ffff", name="tiny", seed=8, conditions=("none", "saliency"))
    app = open_studies(study="tiny")
    assert list_previews(app) == PREVIEWS[:2]
    assert any(caption.value.startswith("The newer build as") for caption in app.caption)


def test_a_newer_build_can_supersede_the_open_one(open_studies: Open, tiny: Path, workspace: Path) -> None:
    service.get_service().researcher.open_study(tiny, 1)
    write_bundle(workspace / "bundles" / "tiny-ffff", name="tiny", seed=8)  # without a contact
    app = open_studies(study="tiny")
    assert any("newer build" in warning.value for warning in app.warning)
    assert next(one for one in app.button if one.label == "Open to participants").disabled
    assert any("does not name a researcher, an e-mail address or the ethics board:" in one.value for one in app.warning)
    next(one for one in app.checkbox if one.label == "Open it without a complete contact").check().run()
    press(app, "Open to participants")
    assert not app.warning
    assert [status.state for status in service.get_service().researcher.studies()] == ["superseded", "open"]


def test_participants_and_simulated_people_are_counted_apart(open_studies: Open, tiny: Path) -> None:
    service.get_service().researcher.open_study(tiny, 2)
    token = service.get_service().participant.begin("tiny")
    service.get_service().participant.consent(token, True)
    service.get_service().participant.ready(token)
    app = open_studies(study="tiny", section="Simulate")
    app.number_input(key="simulate_people").set_value(8)
    press(app, "Simulate")
    assert app.success[0].value.startswith("120 new simulated responses")
    assert any("8 simulated participants have completed" in text.value for text in app.markdown)
    results = next(link.proto for link in app.get("page_link") if link.proto.label.startswith("See their results"))
    assert (results.page, results.query_string) == ("results", "results_source=tiny")
    press(app, "Simulate")
    assert "nothing was added" in app.success[0].value
    app.button_group(key="section").select("Collection").run()
    people = app.table[-1].value
    assert people["Simulated"].sum() == 8
    assert people["Started"].sum() == 1
    assert people["Completed"].sum() == 0


def test_an_empty_mixture_is_one_sentence(open_studies: Open, tiny: Path) -> None:
    service.get_service().researcher.open_study(tiny, 2)
    app = open_studies(study="tiny", section="Simulate")
    for slider in app.slider:
        slider.set_value(0.0)
    press(app, "Simulate")
    assert len(app.error) == 1
    assert app.error[0].value.startswith("The mixture is empty")


def test_trials_show_everything_known(open_studies: Open, tiny: Path) -> None:
    app = open_studies(study="tiny", section="Trials")
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


def test_trials_of_a_placebo_show_what_participants_see(open_studies: Open, workspace: Path) -> None:
    """The pictures on the page, by the bundle's own table of what the condition shows in each place."""
    conditions = ("none", "saliency", "random_maps", "wrong_examples")
    folder = workspace / "bundles" / "fair-0123456789ab"
    write_bundle(folder, name="fair", conditions=conditions, trials=3, practice=0)
    app = open_studies(study="fair", section="Trials")
    assert app.selectbox(key="trial_placebo").options == ["True explanations", "Random maps", "Wrong examples"]
    trials = Bundle(folder).manifest.trials
    for name, per_trial in (("random_maps", 2), ("wrong_examples", 5)):
        app.selectbox(key="trial_placebo").set_value(name).run()
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


def test_export(open_studies: Open, tiny: Path) -> None:
    app = open_studies(study="tiny", section="Export")
    assert app.info[0].value == "No responses have been collected yet."
    service.get_service().researcher.open_study(tiny, 2)
    app = open_studies(study="tiny", section="Simulate")
    app.number_input(key="simulate_people").set_value(4)
    press(app, "Simulate")
    app = open_studies(study="tiny", section="Export")
    assert not app.exception
    assert [b.label for b in app.download_button] == ["Responses (CSV)", "Data dictionary (JSON)"]
    researcher = service.get_service().researcher
    rows = list(csv.DictReader(exporting._file(researcher, "tiny", ["sim"], "tiny.csv").decode().splitlines()))
    assert len(rows) == 4 * 12
    dictionary = json.loads(exporting._file(researcher, "tiny", ["sim"], "data-dictionary.json"))
    assert set(dictionary) == set(rows[0])


def test_an_unknown_study_is_one_sentence(open_studies: Open, tiny: Path) -> None:
    app = open_studies(study="nothing")
    assert not app.exception
    assert app.error[0].value.startswith("There is no study nothing.")


def test_a_damaged_bundle_hides_no_other(open_studies: Open, tiny: Path, workspace: Path) -> None:
    broken = write_bundle(workspace / "bundles" / "broken-00", name="broken")
    manifest = broken / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"seed":7', b'"seed":8'))
    app = open_studies(study="broken")
    assert not app.exception
    assert "was changed since the study was frozen" in app.error[0].value
    assert not open_studies(study="tiny").error
    listed = list_groups(open_studies())
    assert listed["Your studies"] == ["broken", "tiny"]
    assert "demo" in listed["Examples"]


def list_groups(app: AppTest) -> dict[str, list[str]]:
    """The studies of the table, each a link, by their group."""
    _, *groups = app.get("html")[0].proto.body.split('class="group">')
    return {part.partition("<")[0]: re.findall(r'<a href="[?]study=([^"]+)"', part) for part in groups}


def test_a_study_leads_to_its_file_and_an_example_to_a_copy(open_studies: Open, mine: Path) -> None:
    """Catches a study without a way to its design, and an example that leads to another study."""
    for name, label in (("mine", "Edit in Design"), ("demo", "Make your own copy")):
        found = [link.proto for link in open_studies(study=name).get("page_link") if label in link.proto.label]
        assert [(link.page, link.query_string) for link in found] == [("design", f"study={name}")]


def test_a_image_that_changed_cannot_be_opened(open_studies: Open, tiny: Path) -> None:
    asset = next((tiny / "assets").iterdir())
    asset.write_bytes(asset.read_bytes() + b"x")
    app = press(open_studies(study="tiny"), "Open to participants")
    assert "was changed since the study was frozen" in app.error[0].value
    assert service.get_service().researcher.studies() == []


def test_faults_of_a_study_file_are_all_said(open_studies: Open, workspace: Path) -> None:
    (workspace / "studies").mkdir()
    (workspace / "studies" / "mine.toml").write_text(
        '[study]\nname = "Mine!"\ntitle = "T"\n[classifier]\nmodle = "x"\n'
    )
    app = open_studies(study="mine")
    assert not app.exception
    fault = app.error[0].value
    assert "study.name" in fault
    assert "classifier.modle" in fault
    assert "sets" in fault
