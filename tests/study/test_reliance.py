"""`reliance`: two responses in a trial. What is sealed until the first, exactly once, and the measures."""

from __future__ import annotations

import json
from math import exp, log
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from core.errors import ForetellError
from study.analysis.exploratory.analysis import AnalysedStudy, compute, list_analyses
from study.analysis.exploratory.reliance import tabulate
from study.analysis.responses import reading
from study.bundle import Bundle, Trial
from study.conditions import CONDITIONS
from study.participation.draft import make_draft_manifest, make_state
from study.plan.config import read
from study.plan.simulated_participants import BayesianLearner, BeliefProjector, Guesser, MapReader
from study.plan.texts import texts_of
from study.service import Service
from study.simulate import simulate
from study.store import history
from study.tasks.reliance import TASK
from study.tasks.task import FirstStep
from study.tasks.theory import SWITCH, ShownExplanations
from tests.study.participants import MakeBundle, answer, everything, query, tamper, to_trials

SETTINGS: dict[str, Any] = {"study": {"task": "reliance"}}
SEEN = ("none", "both", "nearest_examples", "uncertainty", "random_maps")
RECIPE = Path(__file__).parents[2] / "data" / "studies" / "reliance.toml"


def begin(service: Service, study: str, condition: str) -> tuple[str, list[dict[str, Any]]]:
    """A preview in a condition at its first trial, and all that was sent until then."""
    token = service.participant.begin(study, mode="preview", condition=condition)
    service.participant.consent(token, True)
    states = [service.participant.ready(token), service.participant.ready(token, "example")]
    return token, states


def visible(state: dict[str, Any]) -> dict[str, Any]:
    """All that a page is told but the code, which is each participant's own."""
    return {key: value for key, value in state.items() if key != "withdrawal_code"}


def test_nothing_of_the_second_step_is_sent_before_the_first_response(service: Service, bundle: MakeBundle) -> None:
    """All that is sent before each first response, in five conditions: the same bytes, without a sealed name or image.

    Catches a condition, an explanation, a legend or an AI's label that reaches the browser too early, in the state, in
    the trials ahead, on the example page or among the images to load; and a true class before the final response.
    """
    options: dict[str, Any] = {"conditions": SEEN, "config": {**SETTINGS, "pacing": {"catch": 1}}}
    study = service.researcher.open_study(bundle(trials=6, practice=1, **options), per_condition=1)
    manifest = service.workspace.find_shown_manifest(study)
    trials = {one.assets.target: one for one in (*manifest.trials, *manifest.practice)}
    sealed = {name for one in trials.values() for name in one.assets.every} - set(trials)
    before, after = [], []
    for condition in SEEN:
        token, sent = begin(service, study, condition)
        loaded: list[list[str]] = []
        told: list[Any] = [visible(state) for state in sent]
        while (state := sent[-1])["stage"] in ("practice", "main"):
            first, (own, *ahead) = state["trial"], [trials.get(one["target"]) for one in state["trials"]]
            told.append([visible(state), service.participant.preload(token)])
            assert not any(name in json.dumps(told[-1]) for name in sealed)
            ack = service.participant.record(token, answer(first["index"]))
            sent.append(ack.state)
            if own is None:  # an attention check has no second step
                assert ack.state["trial"]["index"] == first["index"] + 1
                continue
            second = ack.state["trial"]
            assert (first["step"], second["step"], second["index"]) == (1, 2, first["index"])
            assert second["label"]["text"] == f"The AI says: “{own.target}”."
            assert second["texts"]["first"] == f"Your first answer: “{first['left']['name']}”."
            shown = CONDITIONS[condition].shown(own)
            assert (second["map"], second["left"]["samples"]) == (
                shown.target_map,
                list(shown.examples[first["left"]["name"]]),
            )
            assert bool(second["about"]) == (first["index"] == 0 and condition != "none")
            others = {name for one in ahead if one for name in one.assets.every} - set(own.assets.every) - set(trials)
            loaded.append(service.participant.preload(token))
            assert set(own.assets.every) <= set(loaded[-1])
            assert not others & set(loaded[-1])
            assert not any(name in json.dumps(ack.state["trials"][1:]) for name in sealed)
            assert ack.feedback is None
            ack = service.participant.record(token, answer(first["index"], "right", step=2))
            practised = state["stage"] == "practice"
            assert ack.feedback == (f"The true name of this picture is “{own.truth}”." if practised else None)
            sent.append(ack.state)
        before.append(json.dumps(told))
        after.append(loaded)
    assert len(set(before)) == 1
    assert after.count(after[0]) == len(SEEN)  # the same bytes in every condition
    assert "label" not in before[0]


def test_the_ais_label_changes_nothing_before_the_first_response(service: Service, bundle: MakeBundle) -> None:
    """Two studies in which the AI gives the opposite labels, and nothing else: the first steps are the same.

    Catches an order of names, sides or images that follows the AI's label.
    """
    shown = []
    for swap in (False, True):
        study = service.researcher.open_study(
            bundle(trials=6, practice=1, conditions=("both",), config=SETTINGS, swap_answers=swap), per_condition=1
        )
        token, sent = begin(service, study, "both")
        screens = {}
        while (state := sent[-1])["stage"] in ("practice", "main"):
            trial = state["trial"]
            if trial["step"] == 1:
                screens[trial["target"]] = {key: value for key, value in trial.items() if key != "index"}
            sent.append(service.participant.record(token, answer(trial["index"], step=trial["step"])).state)
        shown.append(screens)
    assert shown[0] == shown[1]
    assert len(shown[0]) == 7


def test_two_responses_are_stored_once_in_their_order(tmp_path: Path, bundle: MakeBundle, database: str) -> None:
    """Every wrong response at every step, also after the server starts again: refused in words, kept, nothing lost.

    Catches a final response before the first, a second first one that replaces it, a retry that is stored twice, an
    attempt id used for two steps, a trial that is past, and a participant who returns to the first step. Then tampering
    with a first response, and a withdrawal that leaves one. The codes are those of responses to trials of one step.
    """
    home, person = tmp_path / "two", "returning-0815"
    folder = bundle(trials=2, practice=0, config=SETTINGS)

    def stored(service: Service) -> list[tuple[Any, ...]]:
        first = query(service, "SELECT trial_index, step, side, attempt_id FROM earlier_response ORDER BY trial_index")
        return first + query(service, "SELECT trial_index, 2, side, attempt_id FROM response ORDER BY trial_index")

    home.mkdir()
    with Service(home) as service:
        study = service.researcher.open_study(folder, per_condition=1)
        token = service.participant.begin(study, participant=person)
        to_trials(service, token)
        send = service.participant.record
        early = send(token, answer(0, step=2))
        assert (early.code, early.message[:36]) == (425, "The first response to this trial is ")
        assert send(token, answer(0, step=3)).code == 422
        assert send(token, answer(1)).code == 425
        assert stored(service) == []
        first = answer(0, "right", attempt_id="the-first-response")
        assert [send(token, first).code for _ in range(3)] == [201, 200, 200]
        assert send(token, answer(0, "left")).code == 409
        assert send(token, answer(0, "left", step=2, attempt_id="the-first-response")).code == 409
        kept = [(0, 1, "right", "the-first-response")]
        assert stored(service) == kept
    with Service(home) as service:
        send = service.participant.record
        state = service.participant.state(token)
        assert (state["trial"]["index"], state["trial"]["step"]) == (0, 2)
        chosen = state["trial"]["right"]["name"]
        assert state["trial"]["texts"]["first"] == f"Your first answer: “{chosen}”."
        assert send(token, first).code == 200
        assert send(token, answer(0, "left")).code == 409
        final = answer(0, "left", step=2, attempt_id="the-final-response")
        assert [send(token, final).code for _ in range(2)] == [201, 200]
        assert send(token, answer(0, "right", step=2)).code == 409
        assert [send(token, answer(0, "left", step=step)).code for step in (1, 2)] == [409, 409]
        assert service.participant.state(token)["trial"]["step"] == 1
        assert stored(service) == [*kept, (0, 2, "left", "the-final-response")]
        reasons = query(service, "SELECT reason FROM response_conflict ORDER BY conflict_id")
        assert [row[0] for row in reasons] == ["before the first response", "no such step", *["answered before"] * 6]
        assert service.researcher.verify() == []
        with pytest.raises(Exception, match="append-only"):
            query(service, "UPDATE earlier_response SET side = 'left'")
        assert send(token, answer(1)).code == 201
        [(session,)] = query(service, "SELECT session_id FROM session")
        replayed = service.workspace.store.read(lambda db: history.list_trials(db, session))
        assert [(row["side"], row["first_side"]) for row in replayed] == [("left", "right"), (None, "left")]
        code = service.participant.state(token)["withdrawal_code"]
        tamper(service, "UPDATE earlier_response SET shown_sha256 = 'x' WHERE trial_index = 0")
        faults = service.researcher.verify()
        assert any("was changed after it was recorded" in fault for fault in faults)
        assert any("the response does not match the planned trial" in fault for fault in faults)
        service.participant.withdraw(code)
        assert "the-first-response" not in everything(service)
        assert query(service, "SELECT count(*) FROM erased_answer") == [(3,)]
        assert not [fault for fault in service.researcher.verify() if "does not follow" in fault]


def p(odds: float) -> float:
    return 1 / (1 + exp(-odds))


def test_what_simulated_participants_do(bundle: MakeBundle) -> None:
    """Closed forms; catches an explanation that changes the first response or pushes away from the AI where it speaks
    for it, a switch without a reason, and a marginal probability that does not add up."""
    manifest = Bundle(bundle(config=SETTINGS)).manifest
    wrong, right = (
        next(one for one in manifest.trials if (one.target == one.truth) is known).model_copy(update={"relevance": 0.8})
        for known in (False, True)
    )
    learned = wrong.teaching.model_copy(update={"gain": 2.0})
    wrong = wrong.model_copy(update={"teaching": learned})
    seen, nothing, step = ShownExplanations(True, True), ShownExplanations(), TASK.first_step
    assert isinstance(step, FirstStep)

    def final(theory: Any, trial: Trial, shown: ShownExplanations, first: bool, switch: float = 0.2) -> float:
        return step.p_final(theory, trial, shown, 0.7, switch, first)

    for trial in (wrong, right):
        assert step.p_right(BeliefProjector(), trial, 0.7) == pytest.approx(p(log(9) + 0.7))
        assert step.p_right(Guesser(), trial, 0.7) == 0.5
        ai_right = trial is right
        assert final(MapReader(), trial, seen, ai_right) == ai_right  # the AI agrees
        follows = final(BeliefProjector(), trial, seen, not ai_right)
        assert follows == pytest.approx(0.2 if ai_right else 0.8)
        for switch in (0.0, 1.0):
            assert final(MapReader(), trial, seen, not ai_right, switch) == (switch if ai_right else 1 - switch)
    told = log(0.2 / 0.8) + 10 * (0.8 - 0.5)
    assert final(MapReader(), right, seen, False) == pytest.approx(p(told))
    assert final(MapReader(), wrong, seen, True) == pytest.approx(1 - p(told))
    assert final(BayesianLearner(), wrong, seen, True) == pytest.approx(1 - p(log(0.2 / 0.8) + 2.0))
    own = p(log(9) + 0.7)
    assert TASK.p_right(BeliefProjector(), right, nothing, 0.7) == pytest.approx(own + (1 - own) * SWITCH)


def test_from_simulated_participants_to_the_report(service: Service, bundle: MakeBundle, tmp_path: Path) -> None:
    """Participants who never follow and who always do, through the participant's API, the export and the analysis.

    Catches first and final responses exchanged anywhere on the way, a column of the export that means something else,
    a first response that is lost for Results, and hashes of other tasks' data that the new column changes.
    """
    study = service.researcher.open_study(bundle(config=SETTINGS, practice=1), per_condition=1)
    manifest = service.workspace.find_shown_manifest(study)
    for switch, rair, rsr in ((0.0, 0.0, 1.0), (1.0, 1.0, 0.0)):
        simulate(service, study, 4, {"guesser": 1.0}, seed=3, switch=switch)
        assert simulate(service, study, 4, {"guesser": 1.0}, seed=3, switch=switch) == 0
        every = service.researcher.responses(study, ("sim",))
        frame = every[every["participant"].isin(every["participant"].unique()[-4:])]
        data = reading.prepare(frame)
        by = tabulate(frame.rename(columns={"first_choice": "first", "category": "ai", "choice": "final"}))
        for measure, known in (("RAIR", rair), ("RSR", rsr)):
            assert set(by[by["measure"] == measure]["proportion"].dropna()) == {known}
        study_of = AnalysedStudy(data, manifest=manifest)
        assert "reliance" in list_analyses(study_of)
        result = compute("reliance", study_of)
        pd.testing.assert_frame_equal(result.table, by)
        assert result.figure is not None
    assert (every["first_correct"] == (every["first_choice"] == every["truth"])).all()
    assert (every["correct"] == (every["choice"] == every["truth"])).all()
    assert (every["switched"] == (every["choice"] != every["first_choice"])).all()
    assert (every["first_received_at"] < every["received_at"]).all()
    assert (every["first_rt_ms"] > 0).all()
    without = frame.drop(columns=[name for name in frame if "first" in name or name == "switched"])
    others = without.assign(task="predict"), frame.assign(task="predict", first_choice=None)
    assert reading.prepare(others[0]).sha256 == reading.prepare(others[1]).sha256
    with pytest.raises(ForetellError, match="switch is 2, which is not a probability"):
        simulate(service, study, 1, {"guesser": 1.0}, seed=3, switch=2)


def test_the_variant_of_one_step_shows_the_label_at_once(service: Service, bundle: MakeBundle) -> None:
    """Catches a variant that asks twice, hides one of the two names, or tells the truth; scored by the true class.

    Belief projectors, who know the true class, are nearly always correct whether the AI is right or wrong.
    """
    settings = {"study": {"task": "reliance_one_step"}}
    study = service.researcher.open_study(bundle(config=settings, trials=6, practice=0), per_condition=1)
    state = to_trials(service, service.participant.begin(study, mode="preview", condition="both"))
    trial = next(
        one
        for one in service.workspace.find_shown_manifest(study).trials
        if one.assets.target == state["trial"]["target"]
    )
    assert state["trial"]["label"]["text"] == f"The AI says: “{trial.target}”."
    assert {state["trial"][side]["name"] for side in ("left", "right")} == set(trial.options)
    assert all(len(state["trial"][side]["samples"]) == 2 for side in ("left", "right"))
    simulate(service, study, 8, {"belief_projector": 1.0}, seed=5)
    frame = service.researcher.responses(study, ("sim",))
    assert len(frame) == 6 * 8
    assert (frame["correct"] == (frame["choice"] == frame["truth"])).all()
    assert (frame.groupby("ai_correct")["correct"].mean() > 0.75).all()
    assert frame["first_choice"].isna().all()


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_draft_shows_both_steps_in_the_studys_words(language: str) -> None:
    """Catches a draft whose pages skip a step, or that shows the label in the first; and a recipe that is not read."""
    config = read(RECIPE)
    assert config.task.name == "reliance"
    manifest = make_draft_manifest({**config.model_dump(mode="json"), "language": language, "texts": {}}, language)
    texts = texts_of(manifest)
    first, second = (make_state(manifest, page, "both") for page in ("practice", "trial"))  # type: ignore[arg-type]
    assert (first["trial"]["step"], second["trial"]["step"]) == (1, 2)
    assert "label" not in first["trial"]
    assert first["trial"]["map"] is None
    assert first["texts"]["question"] == texts["question"] != second["trial"]["texts"]["question"]
    assert second["trial"]["label"]["text"] == texts["label"].replace("{name}", "A")
    assert make_state(manifest, "main", "both", step=2)["trial"]["map"] == second["trial"]["map"] is not None
    assert make_state(manifest, "catch", "both")["trial"].get("step") is None
