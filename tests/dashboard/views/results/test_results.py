"""The page of results, run as Streamlit runs it."""

from __future__ import annotations

import io
import json
import shutil
import tomllib
import uuid
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from core.errors import ForetellError
from dashboard.cli.analysis import _analyze_study
from dashboard.cli.terminal import Bars
from dashboard.results import findings
from dashboard.results import jobs as work
from dashboard.shared import service as door
from dashboard.shared.keys import digest
from dashboard.shared.tasks import Task
from study.analysis.exploratory import crosschecks
from study.analysis.means.means import estimate_means
from study.analysis.models import intervals
from study.analysis.planned import contrasts, nested
from study.analysis.report import figures, model_table
from study.analysis.report import results as results_of
from study.analysis.report.opening import write_opening
from study.analysis.responses import accuracies
from study.analysis.responses import reading as responses
from study.bundle import MANIFEST, Bundle
from study.facts import TeachingFacts
from study.participation.payloads import TrialResponse
from study.plan.preregistration import NESTED, AnalysisPlan
from study.service import Mode
from study.simulate import simulate
from tests.conftest import ROOT, write_bundle
from tests.dashboard.conftest import PATIENCE_S, made
from tests.dashboard.views.results.conftest import choose, script, section, table, tables, upload
from tests.study.analysis.simulated import study


def labels(app: AppTest) -> list[str]:
    return [heading.value.rpartition("[")[2].rstrip("]") for heading in app.header if "badge[" in heading.value]


def test_the_answer_comes_first_and_then_the_data(app: AppTest) -> None:
    choose(app, "Main")
    assert [heading.value.partition(" :")[0] for heading in app.header] == [
        "Do explanations help participants predict the AI?", figures.TITLES[True], "Data and exclusions",
    ]  # fmt: skip
    assert {m.label: m.value for m in app.metric} == {
        "Participants": "24",
        "Responses": "432",
        "Predicted classes": "8",
        "Rows excluded": "0",
    }
    assert list(table(app, "quality")["participants"]) == [6, 6, 6, 6]
    data = responses.prepare(study(24, 8, 6, seed=5))
    analysis = nested.analyze(data)
    opening = write_opening(analysis, data, contrasts.table(analysis.largest), None)
    assert [line.value for line in app.markdown[:2]] == [
        findings._write(opening.verdict),
        findings._write(opening.size),
    ]
    (tests,) = [line.value.splitlines()[2:] for line in app.markdown if "χ²" in line.value]
    assert ["F(2, " in tests[0], "F(7, " in tests[1]] == [True, True]
    assert [chart.key for chart in app.get("plotly_chart")] == ["figure_contrasts", "figure_figure1"]
    (effects,) = [line.value for line in app.markdown if line.value.count("percentage points (95% CI") > 1]
    assert effects.count("- ") >= 9  # each explanation against none, for each trial type, before the tests
    pd.testing.assert_frame_equal(table(app, "figure1"), accuracies.accuracy(data.frame))


def test_models_contrasts_and_checks_are_the_engines(app: AppTest) -> None:
    """The numbers of each section are those of the package; catches a table of another model or other rows."""
    choose(app, "Main")
    study_rows = responses.prepare(study(24, 8, 6, seed=5)).frame
    analysis = nested.analyze(study_rows)
    largest = analysis.models["interaction"]
    section(app, "Models")
    pd.testing.assert_frame_equal(table(app, "models"), nested.comparison(analysis))
    pd.testing.assert_frame_equal(table(app, "table1"), model_table.table(largest))
    profiles = intervals.profile(study_rows, largest, ["saliency"]).iloc[0]
    shown = table(app, "profiles").set_index("term").loc["saliency"]
    assert (shown["low"], shown["high"]) == pytest.approx((profiles["low"], profiles["high"]), abs=1e-3)
    assert list(table(app, "variance_profiles")["group"]) == [effect.group for effect in largest.random]
    section(app, "Contrasts")
    pd.testing.assert_frame_equal(table(app, "contrasts"), contrasts.table(largest))
    assert set(table(app, "effects")["variable"]) == {"saliency", "examples"}
    app.multiselect(key="means").set_value(["saliency"]).run()
    app.selectbox(key="means_within").set_value("trial_type").run()
    app.selectbox(key="means_correction").set_value("Max-t (simultaneous)").run()
    made = estimate_means(study_rows, largest, "saliency | trial_type", adjust="mvt", scale="population")
    pd.testing.assert_frame_equal(table(app, "means"), made.means.dropna(axis=1, how="all"), check_dtype=False)
    assert list(table(app, "means_contrasts")["p_mvt"]) == pytest.approx(list(made.contrasts["p_mvt"]))
    section(app, "Checks")
    assert list(table(app, "exploratory_crosschecks")["mixed"]) == [c.estimate for c in largest.coefficients]
    assert all(words in [c.value for c in app.caption] for words in crosschecks.EXPLANATIONS.values())


def test_a_measure_is_made_when_it_is_asked_for_and_labelled(app: AppTest) -> None:
    section(choose(app, "Main"), "Exploratory")
    assert len(table(app, "exploratory_detection")) == 4
    made(app.selectbox(key="measure").select("Learning over trials").run())
    assert "exploratory_learning" in tables(app)
    made(app.selectbox(key="measure").select("Calibration of confidence").run())
    assert "name a column of probabilities 'confidence'" in app.error[0].value
    assert labels(app) == ["exploratory"]


def test_the_report_is_that_of_the_verb(app: AppTest, tmp_path: Path) -> None:
    """Byte for byte; catches another seed, or rows in another form."""
    section(choose(app, "Main"), "Report")
    data = responses.prepare(study(24, 8, 6, seed=5))
    analysis = results_of.write(data, tmp_path / "out").analysis
    found = work.make_analysis_task(work.make_sample_task(data, None).ask().result).ask().result
    written = work.make_report_task(found).ask().result
    assert written == {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert analysis.tests == found.analysis.tests
    with zipfile.ZipFile(io.BytesIO(work.zip_files(written))) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == written
    assert "Report, one page (HTML)" in [button.label for button in app.download_button]


def test_the_figure_needs_no_model(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches Figure 1 behind the fits: they take seconds, and may fail where the figure does not."""

    def fails(*_: object, **__: object) -> None:
        raise ForetellError("No model today.")

    monkeypatch.setattr(nested, "analyze", fails)
    upload(choose(app, "Upload a CSV file"), study(24, 8, 6, seed=77))
    assert [box.value for box in app.error] == ["No model today."]
    assert len(table(app, "figure1")) == 12
    assert labels(app) == ["exploratory"]


def test_more_answers_than_a_page_may_fit_are_for_the_verb(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a fit of a huge file, during which no participant of the same server would be answered."""
    monkeypatch.setattr(work, "MOST", 100)
    monkeypatch.setattr(nested, "analyze", None)  # not even begun
    upload(choose(app, "Upload a CSV file"), study(24, 8, 6, seed=79))
    assert "figure1" in tables(app)
    assert any("command analyze" in box.value for box in app.error)
    assert not app.exception


def test_who_was_excluded_is_told_of_these_rows() -> None:
    """Catches the counts of other rows of which the plan leaves the same, on the page and in the report."""
    plan, everybody = AnalysisPlan(exclusions={"fewest_responses": 10}), study(24, 8, 6, seed=5)
    gone = everybody["participant"] == "p0"
    told = {}
    for name, frame in {"two": everybody[~gone | (everybody.index % 2 == 0)], "none": everybody[~gone]}.items():
        sample = awaited(work.make_sample_task(responses.prepare(frame), plan))
        found = awaited(work.make_analysis_task(sample))
        told[name] = (sample, found, awaited(work.make_report_task(found))["exclusions.csv"])
    assert told["two"][0].data.sha256 == told["none"][0].data.sha256
    assert [told[name][0].plan.exclusions["people"].sum() for name in told] == [1, 0]
    assert [told[name][1].plan.exclusions["people"].sum() for name in told] == [1, 0]
    assert told["two"][2] != told["none"][2]


def awaited(task: Task) -> Any:
    """What comes of a task."""
    job = task.ask()
    assert job.wait(PATIENCE_S), job.error
    assert job.state == "done", job.error
    return job.result


def test_same_rows_are_fitted_once_and_other_rows_again(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[int] = []
    fit = nested.analyze
    monkeypatch.setattr(nested, "analyze", lambda data, **rest: fits.append(len(data.frame)) or fit(data, **rest))
    frame = study(20, 8, 6, seed=77)
    changed = frame.assign(correct=[1 - frame["correct"][0], *frame["correct"][1:]])
    choose(app, "Upload a CSV file")
    for content in (frame, changed, frame, changed):
        upload(app, content)
    assert len(fits) == 2 * 2  # with random slopes, and as in the paper


AS_IN_THE_PAPER = {"analysis": {"models": NESTED, "tests": "chi_square"}}
"""A study whose models are fitted in a moment, for tests of anything else."""
PLAN = {"analysis": {"exclusions": {"fewest_responses": 18}, "participants": 2, "contrasts": [{"more": "both"}]}}
QUICK_PLAN = {"analysis": PLAN["analysis"] | AS_IN_THE_PAPER["analysis"]}


def planned_study(workspace: Path, plan: dict[str, object], participants: int = 13) -> None:
    """A study with simulated people, whose trials' examples teach more and more.

    Also without one of them it has more responses than those of which every model is searched for from several starts.
    Each study is simulated once, and copied for the next test: the same responses are not fitted again.
    """
    copy = workspace.parents[1] / "planned-studies" / digest(json.dumps(plan), str(participants))
    if copy.exists():
        shutil.copytree(copy, workspace, dirs_exist_ok=True)
        return
    service = door.get_service()
    demo = tomllib.loads((ROOT / "data" / "studies" / "demo.toml").read_text(encoding="utf-8"))
    folder = write_bundle(workspace / "bundles" / "demo-00", name="demo", trials=18, config={**demo, **plan})
    manifest = Bundle(folder).manifest
    trials = [
        trial.model_copy(update={"teaching": TeachingFacts(p_learner=k / 20)})
        for k, trial in enumerate(manifest.trials)
    ]
    manifest = manifest.model_copy(update={"trials": tuple(trials)})
    manifest = manifest.model_copy(update={"study_hash": manifest.compute_hash()})
    (folder / MANIFEST).write_text(manifest.model_dump_json())
    service.researcher.open_study(folder, 4)
    simulate(service, "demo", participants, {"belief_projector": 1.0}, 0)
    door.close()
    shutil.copytree(workspace, copy)


def test_the_frozen_plan_is_executed_and_told_apart(workspace: Path) -> None:
    planned_study(workspace, PLAN)
    app = made(AppTest.from_function(script).run())
    assert app.success[0].value.startswith("The planned 2 participants per condition were reached")
    assert not any("misplaced" in warning.value for warning in app.warning)
    assert table(app, "exclusions").to_dict("records") == [
        {"rule": "fewer than 18 responses", "people": 0, "responses": 0}
    ]
    assert labels(app) == ["planned", "planned"]
    section(app, "Contrasts")
    assert list(table(app, "contrasts")["contrast"]) == ["both - none"]
    assert labels(app) == ["planned", *["exploratory"] * 4]
    made(app.toggle(key="planned").set_value(False).run())
    assert len(table(app, "contrasts")) == 9
    assert labels(app) == ["exploratory"] * 5


def test_participants_excluded_on_monitor_are_counted_everywhere(
    workspace: Path, no_slopes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table of exclusions, on the page and in ``exclusions.csv``, left them out: 13 took part, 12 were analysed."""
    monkeypatch.setattr("study.analysis.exploratory.analysis.compute_all", lambda *_, **__: ([], []))  # not seen here
    planned_study(workspace, QUICK_PLAN)
    service = door.get_service()
    service.workspace.store.write(lambda db: db.exec_driver_sql("UPDATE session SET mode = 'live'"))
    gone = service.researcher.load_participants("demo")["participant"][0]
    service.researcher.exclude("demo", gone, "wrote that they guessed")
    service.researcher.close_study("demo")
    rules = [
        {"rule": "excluded by a researcher: wrote that they guessed", "people": 1, "responses": 18},
        {"rule": "fewer than 18 responses", "people": 0, "responses": 0},
    ]
    app = made(AppTest.from_function(script).run())
    assert table(app, "exclusions").to_dict("records") == rules
    made(app.toggle(key="planned").set_value(False).run())
    assert table(app, "exclusions").to_dict("records") == rules[:1]
    with Bars() as progress:
        _analyze_study("demo", workspace / "results", 0, progress, simulated=False)
    assert pd.read_csv(workspace / "results" / "exclusions.csv").to_dict("records") == rules
    assert rules[0]["rule"] in (workspace / "results" / "report.md").read_text(encoding="utf-8")


def test_before_the_planned_number_is_reached_it_is_interim(workspace: Path, no_slopes: None) -> None:
    planned_study(workspace, {"analysis": AS_IN_THE_PAPER["analysis"] | {"participants": 4}})
    app = made(AppTest.from_function(script).run())
    assert labels(app) == ["planned analysis, interim data"] * 2
    assert any(line.value.startswith("Collection is not complete: 3 of the 4 planned") for line in app.caption)


def test_a_plan_that_cannot_be_executed_is_said_and_can_be_left_out(workspace: Path) -> None:
    planned_study(workspace, {"analysis": {"exclusions": {"fewest_responses": 1000}}})
    app = made(AppTest.from_function(script).run())
    assert "exclusions leave 0 participants of 13" in app.error[0].value
    made(app.toggle(key="planned").set_value(False).run())
    assert not app.error
    assert labels(app) == ["exploratory", "exploratory"]


def test_theories_and_trials_beside_people(workspace: Path) -> None:
    """Each trial four times, once a condition, beside its own number; catches a join by place instead of by item."""
    planned_study(workspace, PLAN)
    app = section(made(AppTest.from_function(script).run()), "Exploratory")
    made(app.selectbox(key="measure").select("Theories of participants").run())
    assert table(app, "exploratory_theories")["aic"].is_monotonic_increasing
    made(app.selectbox(key="measure").select("Participants and the best theory").run())
    assert len(table(app, "exploratory_overlay")) == 12
    made(app.selectbox(key="measure").select("Trials and their explanations").run())
    named = table(app, "exploratory_associations")["condition"]
    assert list(dict.fromkeys(named)) == ["none", "saliency", "examples", "both"]
    assert len(named) == 4 * 3
    made(app.selectbox(key="measure").select("Trials by the learner's probability of the AI's prediction").run())
    joined = table(app, "exploratory_items_p_learner")
    assert len(joined) == 18 * 4
    assert all(row.p_learner == int(row.item.split("-")[1]) / 20 for row in joined.itertuples())


def take_part(study: str, person: str, mode: Mode = "live") -> None:
    """A person who always presses left."""
    service = door.get_service()
    token = service.participant.begin(study, mode=mode, participant=person)
    service.participant.consent(token, True)
    service.participant.ready(token)
    state = service.participant.ready(token, "example")
    while state["stage"] in ("practice", "main"):
        index = state["trial"]["index"]
        answer = TrialResponse(trial_index=index, attempt_id=str(uuid.uuid4()), side="left", input="key", rt_ms=900.0)
        state = service.participant.record(token, answer).state
    service.participant.finish(token)


def test_nothing_collected_yet(workspace: Path) -> None:
    app = made(AppTest.from_function(script).run())
    assert app.selectbox(key="results_source").options == ["Upload a CSV file"]


def test_a_study_frozen_before_maps_were_in_place_says_so(workspace: Path, no_slopes: None) -> None:
    """The demo's network sees its images whole; of another, frozen without a word of the drawing, nobody knows."""
    planned_study(workspace, {**QUICK_PLAN, "classifier": {"model": "mine.py:build"}})
    app = made(AppTest.from_function(script).run())
    assert ["misplaced heatmaps" in warning.value for warning in app.warning].count(True) == 1


def test_people_without_an_answer_yet(workspace: Path) -> None:
    service = door.get_service()
    service.researcher.open_study(write_bundle(workspace / "bundles" / "demo-00", name="demo", trials=18), 3)
    service.participant.begin("demo", participant="a")
    app = made(AppTest.from_function(script).run())
    assert app.info[0].value.startswith("No responses yet. Send the study's link to participants")
    assert not app.error


def test_participants_hide_simulated_people_until_asked_for(workspace: Path, no_slopes: None) -> None:
    service = door.get_service()
    folder = write_bundle(workspace / "bundles" / "demo-00", name="demo", trials=18, config=AS_IN_THE_PAPER)
    service.researcher.open_study(folder, 3)
    simulate(service, "demo", 8, {"belief_projector": 1.0}, 0)
    app = made(AppTest.from_function(script).run())
    assert [toggle.key for toggle in app.toggle] == ["planned"]
    assert "Simulated participants: not evidence (144 of 144 responses)." in [w.value for w in app.warning]
    for person in "abcd":
        take_part("demo", person)
    take_part("demo", "the researcher", mode="preview")
    service.researcher.unblind("demo", "the pilot")
    app = made(AppTest.from_function(script).run())
    assert not any("Simulated" in warning.value for warning in app.warning)
    assert {m.label: m.value for m in app.metric}["Responses"] == "72"
    made(app.toggle(key="results_simulated").set_value(True).run())
    assert {m.label: m.value for m in app.metric}["Responses"] == "144"
    assert "Simulated participants: not evidence (144 of 144 responses)." in [w.value for w in app.warning]
