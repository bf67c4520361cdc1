"""The page of results, run as Streamlit runs it."""

from __future__ import annotations

import uuid
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard import door
from dashboard.views import results
from study.answer import Answer
from study.service import Mode
from study.simulate import simulate
from tests.conftest import write_bundle
from tests.study.analysis.simulated import study


def script() -> None:
    """The page over the real service."""
    from dashboard.views import results

    results.page()


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """The page with three studies collected."""
    studies = {
        "Pilot": lambda: study(16, 8, 6, seed=4).assign(mode="sim"),
        "Main": lambda: study(24, 8, 6, seed=5),
        "Broken": lambda: study(24, 8, 6, seed=5).drop(columns="correct"),
    }
    monkeypatch.setattr(results, "study_frames", lambda: studies)
    return AppTest.from_function(script, default_timeout=30).run()


def choose(app: AppTest, name: str) -> AppTest:
    return app.selectbox(key="results_source").select(name).run()


def test_simulated_participants_are_marked_before_any_result(app: AppTest) -> None:
    assert not app.exception
    assert app.warning[0].value == "Simulated participants: not evidence (288 of 288 answers)."
    assert not any("Simulated" in warning.value for warning in choose(app, "Main").warning)


def test_quality_tests_and_table(app: AppTest) -> None:
    choose(app, "Main")
    assert {m.label: m.value for m in app.metric} == {
        "Participants": "24",
        "Answers": "432",
        "Target categories": "8",
        "Rows left out": "0",
    }
    quality, table = (element.value for element in app.dataframe)
    assert list(quality["participants"]) == [6, 6, 6, 6]
    assert len(table) == 12
    assert "χ²(2) = " in app.markdown[0].value
    assert "χ²(7) = " in app.markdown[1].value
    assert len(app.get("plotly_chart")) == 1
    assert [button.label for button in app.download_button] == ["Table 1 (CSV)", "Table 1 (LaTeX)", "Models (JSON)"]


def test_unusable_responses_are_refused_in_words(app: AppTest) -> None:
    choose(app, "Broken")
    assert not app.exception
    assert app.error[0].value.startswith("Broken: Column 'correct' is missing.")


def upload(app: AppTest, frame: pd.DataFrame) -> AppTest:
    file = ("mine.csv", frame.to_csv(index=False).encode(), "text/csv")
    return app.file_uploader(key="results_file").set_value(file).run()


def test_own_file_with_other_names(app: AppTest) -> None:
    choose(app, "A CSV file of mine")
    assert app.info[0].value == "Choose a CSV file with one row per answer."
    upload(app, study(24, 8, 6, seed=5).rename(columns={"correct": "hit"}))
    assert "Column 'correct' is missing" in app.error[0].value
    app.selectbox(key="results_column_correct").select("hit").run()
    assert not app.error
    assert len(app.dataframe) == 2


def test_same_rows_are_fitted_once_and_other_rows_anew(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    from study.analysis import nested

    fits: list[int] = []
    fit = nested.analyze
    monkeypatch.setattr(nested, "analyze", lambda data: fits.append(len(data.frame)) or fit(data))
    frame = study(20, 8, 6, seed=77)
    changed = frame.assign(correct=[1 - frame["correct"][0], *frame["correct"][1:]])
    choose(app, "A CSV file of mine")
    for content in (frame, changed, frame, changed):
        upload(app, content)
    assert len(fits) == 2


def take_part(study: str, person: str, mode: Mode = "live") -> None:
    """A person who always presses left."""
    service = door.service()
    token = service.begin(study, mode=mode, participant=person)
    service.consent(token, True)
    service.ready(token)
    state = service.ready(token, "example")
    while state["stage"] in ("practice", "main"):
        index = state["trial"]["index"]
        answer = Answer(trial_index=index, attempt_id=str(uuid.uuid4()), side="left", input="key", rt_ms=900.0)
        state = service.record(token, answer).state
    service.finish(token)


def test_nothing_collected_yet(workspace: Path) -> None:
    app = AppTest.from_function(script, default_timeout=60).run()
    assert not app.exception
    assert app.selectbox(key="results_source").options == ["A CSV file of mine"]


def test_participants_hide_simulated_people_until_asked_for(workspace: Path) -> None:
    service = door.service()
    service.open_study(write_bundle(workspace / "bundles" / "demo-00", name="demo", trials=18), 3)
    simulate(service, "demo", 8, {"belief_projector": 1.0}, 0)
    app = AppTest.from_function(script, default_timeout=60).run()
    assert not app.exception
    assert not app.toggle
    assert "Simulated participants: not evidence (144 of 144 answers)." in [w.value for w in app.warning]
    for person in "abcd":
        take_part("demo", person)
    take_part("demo", "the researcher", mode="preview")
    app = AppTest.from_function(script, default_timeout=60).run()
    assert not any("Simulated" in warning.value for warning in app.warning)
    assert {m.label: m.value for m in app.metric}["Answers"] == "72"
    app.toggle(key="results_simulated").set_value(True).run()
    assert {m.label: m.value for m in app.metric}["Answers"] == "144"
    assert "Simulated participants: not evidence (144 of 144 answers)." in [w.value for w in app.warning]


def test_versions_of_a_study_are_not_pooled(workspace: Path) -> None:
    service = door.service()
    for seed, people in ((7, 4), (8, 8)):
        folder = write_bundle(workspace / "bundles" / f"demo-{seed}", name="demo", trials=18, seed=seed)
        service.open_study(folder, 3)
        simulate(service, "demo", people, {"belief_projector": 1.0}, seed)
    app = AppTest.from_function(script, default_timeout=60).run()
    assert not app.exception
    assert {m.label: m.value for m in app.metric}["Answers"] == "144"
    versions = app.selectbox(key="results_version")
    versions.select_index(1).run()
    assert {m.label: m.value for m in app.metric}["Answers"] == "72"
