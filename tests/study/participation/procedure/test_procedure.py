"""The procedure around the trials: check before the place, attention checks, confidence, time, tabs."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import Any

import pytest

from core.errors import ForetellError
from study.bundle import Bundle
from study.conditions.condition import ShownAssets, no_examples
from study.conditions.saliency import CONDITION
from study.locales import CATALOGUES
from study.participation.payloads import CheckResponses, ClientDevice, ClientEvent, QuestionnaireResponses
from study.participation.refusals import Refusal
from study.service import Service
from study.simulate import simulate
from tests.study.participants import CONDITIONS, MakeBundle, answer, query, take_part, to_trials
from tests.study.participation.procedure.conftest import MINUTE, Clock, Open

QUESTIONS = [
    {"text": "?", "options": ["a", "b", "c"], "answer": "b"},
    {"text": "??", "options": ["y", "n"], "answer": "n"},
]

RIGHT, WRONG = [1, 1], [0, 1]

pytestmark = pytest.mark.usefixtures("database")


def to_check(service: Service, study: str) -> str:
    token = service.participant.begin(study)
    service.participant.consent(token, True)
    assert service.participant.ready(token)["stage"] == "check"
    return token


def held(service: Service) -> int:
    return int(query(service, "SELECT count(*) FROM allocation_slot WHERE state != 'open'")[0][0])


# The check


def test_a_place_is_given_only_to_who_understood(service: Service, opened: Open) -> None:
    token = to_check(service, opened(check={"questions": QUESTIONS}))
    state = service.participant.check(token, CheckResponses(attempt=1, answers=WRONG))
    assert (state["stage"], held(service)) == ("instructions", 0)
    assert state["notice"] == CATALOGUES["en"]["check_again"]
    assert service.participant.ready(token)["attempt"] == 2
    state = service.participant.check(token, CheckResponses(attempt=2, answers=RIGHT))
    assert (state["stage"], held(service)) == ("example", 1)


def test_failing_twice_is_a_polite_end_with_its_code(service: Service, opened: Open) -> None:
    study = opened(
        check={"questions": QUESTIONS}, recruiter={"screened": "SCR1", "url": "https://r.test/done?cc={code}"}
    )
    token = to_check(service, study)
    service.participant.check(token, CheckResponses(attempt=1, answers=WRONG))
    service.participant.ready(token)
    state = service.participant.check(token, CheckResponses(attempt=2, answers=WRONG))
    assert (state["stage"], state["code"], state["redirect"]) == ("screened", "SCR1", "https://r.test/done?cc=SCR1")
    assert held(service) == 0
    assert query(service, "SELECT count(*) FROM trial_plan") == [(0,)]


def test_a_try_whose_acknowledgement_is_lost_counts_once(service: Service, opened: Open) -> None:
    """Catches a retry counted as the second try: the person would be sent away for a bad connection."""
    token = to_check(service, opened(check={"questions": QUESTIONS}))
    sent = CheckResponses(attempt=1, answers=WRONG)
    assert [service.participant.check(token, sent)["stage"] for _ in range(3)] == ["instructions"] * 3
    assert query(service, "SELECT attempt, passed FROM comprehension") == [(1, 0)]


def test_the_page_is_not_told_the_right_answers(service: Service, opened: Open) -> None:
    state = service.participant.state(to_check(service, opened(check={"questions": QUESTIONS})))
    assert [set(question) for question in state["questions"]] == [{"text", "options"}] * 2


def test_a_lost_acknowledgement_skips_no_page(service: Service, opened: Open) -> None:
    """`ready` names the page that was read: sent twice it must not pass the example unseen."""
    token = service.participant.begin(opened())
    service.participant.consent(token, True)
    assert [service.participant.ready(token)["stage"] for _ in range(2)] == ["example"] * 2


def test_the_consent_says_what_was_agreed_to(service: Service, opened: Open) -> None:
    token = service.participant.begin(opened(language="de", consent={"version": "7", "boxes": ["Ja.", "Doch."]}))
    service.participant.consent(
        token, True, ClientDevice(browser="Firefox", system="Linux", width=1, height=2, dpr=1.5, touch=False)
    )
    [(lang, version, boxes)] = query(service, "SELECT lang, version, boxes_json FROM consent")
    assert (lang, version, json.loads(boxes)) == ("de", "7", ["Ja.", "Doch."])
    [(env,)] = query(service, "SELECT env_json FROM session")
    assert json.loads(env)["browser"] == "Firefox"


def test_every_condition_loads_the_same_images_up_to_the_break(service: Service, opened: Open) -> None:
    """The bytes are the same whatever is shown, and the block ends where the page pauses."""
    opened(pacing={"break_every": 5})
    manifest = Bundle(service.researcher.studies()[0].folder).manifest
    loaded = {}
    for name in CONDITIONS:
        token = service.participant.begin("demo", mode="preview", condition=name)
        state = to_trials(service, token)
        practice = service.participant.preload(token)
        for index in range(3):
            state = service.participant.record(token, answer(index)).state
        loaded[name] = (practice, service.participant.preload(token))
        assert state["stage"] == "main"
    assert len({json.dumps(names) for names in loaded.values()}) == 1
    practice, block = loaded["none"]
    assert set(practice) == {sha for trial in manifest.practice for sha in pictures(trial)}
    assert len(block) == 5 * 10
    assert (state["total"], state["breaks"]) == (12, [5])


def pictures(trial: Any) -> list[str]:
    own = trial.assets
    return [own.target, own.target_map, *(sha for e in own.examples for sha in (e.image, e.map))]


def test_at_most_three_trials_ahead_are_told_and_none_of_the_next_stretch(service: Service, opened: Open) -> None:
    token = service.participant.begin(opened())
    state = to_trials(service, token)
    assert [trial["index"] for trial in state["trials"]] == [0, 1, 2]
    for index in range(3):
        state = service.participant.record(token, answer(index)).state
    assert [trial["index"] for trial in state["trials"]] == [3, 4, 5, 6]


# Confidence and questionnaire


def test_confidence_is_kept_where_the_study_asks_and_refused_where_not(service: Service, opened: Open) -> None:
    token = service.participant.begin(opened(pacing={"confidence": True}))
    to_trials(service, token)
    assert service.participant.record(token, answer(0)).code == 422
    assert service.participant.record(token, answer(0, confidence=0.75)).code == 201
    assert query(service, "SELECT confidence FROM response") == [(0.75,)]
    with pytest.raises(ValueError, match="confidence"):
        answer(1, confidence=1.5)


ITEMS = [
    {"id": "hard", "kind": "scale", "text": "?", "points": 5},
    {"id": "which", "kind": "choice", "text": "?", "options": ["x", "y"]},
    {"id": "why", "kind": "text", "text": "?", "required": False},
]


def test_the_questionnaire_is_kept_once_and_as_asked(service: Service, opened: Open) -> None:
    token = service.participant.begin(opened(questionnaire=ITEMS))
    take_part(service, token)
    bad: list[dict[str, Any]] = [
        {"hard": 6, "which": "x"},
        {"hard": 1, "which": "z"},
        {"hard": 1},
        {"hard": 1, "which": "x", "q": 1},
    ]
    for answers in bad:
        with pytest.raises(Refusal) as refused:
            service.participant.fill(token, QuestionnaireResponses(answers=answers))
        assert refused.value.code == 422
    for _ in range(2):
        assert (
            service.participant.fill(token, QuestionnaireResponses(answers={"hard": 5, "which": "y"}))["stage"]
            == "debrief"
        )
    assert service.participant.finish(token)["stage"] == "done"
    [kept] = service.researcher.load_participants("demo")["questionnaire"]
    assert json.loads(kept) == {"hard": 5, "which": "y"}


def test_simulated_people_take_the_whole_procedure(service: Service, opened: Open) -> None:
    study = opened(check={"questions": QUESTIONS}, questionnaire=ITEMS, road={"catch": 2, "confidence": True})
    assert simulate(service, study, 6, {"belief_projector": 1.0}, seed=1) == 6 * 17
    people = service.researcher.load_participants(study, ("sim",))
    assert set(people["stage"]) == {"done"}
    assert service.researcher.responses(study, ("sim",))["confidence"].between(0, 1).all()
    assert service.researcher.verify() == []


# Time and places


def test_a_participation_has_an_end(service: Service, opened: Open, clock: Clock) -> None:
    token = service.participant.begin(opened(pacing={"longest_minutes": 60}, recruiter={"partial": "PART"}))
    clock.minutes(500)  # an open consent page does not age
    to_trials(service, token)
    service.participant.record(token, answer(0))
    clock.minutes(59)
    assert service.participant.record(token, answer(1)).code == 201
    clock.minutes(2)
    state = service.participant.state(token)
    assert (state["stage"], state["code"], held(service)) == ("expired", "PART", 0)
    assert service.participant.record(token, answer(2)).code == 410
    assert service.researcher.verify() == []


def test_a_late_finisher_is_kept_over_the_quota(service: Service, opened: Open, clock: Clock) -> None:
    """Four places, all taken: a fifth person gets the first of them after the hold, and all finish."""
    study = opened(per_condition=1)
    tokens = []
    for _ in range(4):
        clock.minutes(0.1)
        tokens.append(service.participant.begin(study))
        to_trials(service, tokens[-1])
    with pytest.raises(Refusal, match="All places"):
        service.participant.begin(study)
    clock.minutes(31)
    late = service.participant.begin(study)
    take_part(service, late)
    for token in tokens:
        finish(service, token)
    people = service.researcher.load_participants(study)
    assert list(people["over_quota"]) == [1, 0, 0, 0, 0]
    assert query(service, "SELECT count(*) FROM allocation_slot WHERE state = 'done'") == [(4,)]
    assert service.researcher.verify() == []


def finish(service: Service, token: str) -> None:
    state = service.participant.state(token)
    while state["stage"] in ("practice", "main"):
        state = service.participant.record(token, answer(state["trial"]["index"])).state
    service.participant.finish(token)


def test_a_place_is_kept_longer_where_people_take_longer(service: Service, opened: Open, clock: Clock) -> None:
    """2.5 times the median, at least half an hour: medians 10 and 40 min give 30 and 100 min."""
    study = opened(per_condition=2)
    for minutes, hold in ((10, 30), (40, 30), (41, 100)):
        token = service.participant.begin(study)
        to_trials(service, token)
        [(until,)] = query(service, "SELECT held_until FROM allocation_slot WHERE state = 'held'")
        assert (until - clock.now) / MINUTE == pytest.approx(hold)
        clock.minutes(minutes)
        finish(service, token)


# Tabs


def test_one_tab_at_a_time(service: Service, opened: Open, clock: Clock) -> None:
    token = service.participant.begin(opened())
    to_trials(service, token)
    service.participant.state(token, "one")
    sent = answer(0)
    for call in (
        lambda: service.participant.state(token, "two"),
        lambda: service.participant.record(token, sent, "two"),
    ):
        with pytest.raises(Refusal) as refused:
            call()
        assert refused.value.code == 423
    assert service.participant.take_over(token, "two")["stage"] == "practice"
    with pytest.raises(Refusal):
        service.participant.record(token, sent, "one")
    assert service.participant.record(token, sent, "two").code == 201
    clock.minutes(2)  # nobody holds it any more
    assert service.participant.record(token, answer(1), "one").code == 201


def test_opening_the_link_again_is_a_take_over(service: Service, opened: Open) -> None:
    study = opened()
    first = service.participant.begin(study, participant="same")
    to_trials(service, first)
    service.participant.state(first, "one")
    again = service.participant.begin(study, participant="same")
    assert service.participant.state(again, "two")["stage"] == "practice"
    with pytest.raises(Refusal) as refused:
        service.participant.record(first, answer(0), "one")
    assert refused.value.code == 401
    assert held(service) == 1


def test_attempt_ids_are_the_pages_own(service: Service, opened: Open) -> None:
    """Ten wrong-order and replayed posts leave one row for each trial."""
    token = service.participant.begin(opened())
    to_trials(service, token)
    sent = [answer(index, attempt_id=str(uuid.uuid4())) for index in range(5)]
    codes = [service.participant.record(token, sent[i]).code for i in (1, 0, 0, 3, 1, 0, 2, 1, 4, 3)]
    assert codes == [425, 201, 200, 425, 201, 200, 201, 200, 425, 201]
    assert query(service, "SELECT trial_index FROM response ORDER BY seq") == [(0,), (1,), (2,), (3,)]


# The example, the clock, the bytes


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_example_is_a_practice_trial_as_this_person_will_see_it(
    service: Service, bundle: MakeBundle, condition: str
) -> None:
    study = service.researcher.open_study(bundle(practice=2), 2)
    token = service.participant.begin(study, mode="preview", condition=condition)
    service.participant.consent(token, True)
    shown = service.participant.ready(token)["screen"]
    assert service.participant.ready(token, "example")["stage"] == "practice"
    service.participant.record(token, answer(0))
    trial = service.participant.state(token)["trial"]
    assert trial["index"] == 1
    assert shown == {key: value for key, value in trial.items() if key != "index"}


def test_without_practice_no_test_trial_is_shown_before_its_time(service: Service, bundle: MakeBundle) -> None:
    study = service.researcher.open_study(bundle(practice=0), 2)
    token = service.participant.begin(study)
    service.participant.consent(token, True)
    assert service.participant.ready(token)["screen"] is None


def test_the_clocks_distance_is_kept_after_the_consent_only(service: Service, opened: Open, clock: Clock) -> None:
    study = opened()
    token = service.participant.begin(study)
    pinged = [ClientEvent(event_id=f"ping-{n:04}", kind="clock", payload={"offset_ms": 12.5 + n, "round_trip_ms": 3})
              for n in range(2)]  # fmt: skip
    assert service.participant.events(token, pinged[:1]) == 0
    service.participant.consent(token, True)
    assert service.participant.events(token, pinged[:1]) == 1
    assert service.researcher.load_participants(study)[["clock_offset_ms", "round_trip_ms"]].to_numpy().tolist() == [
        [12.5, 3.0]
    ]
    clock.minutes(1)
    service.participant.begin(study)
    assert service.researcher.load_participants(study)["clock_offset_ms"].isna().tolist() == [False, True]


def test_a_condition_that_loads_more_than_the_others_is_refused(
    service: Service, bundle: MakeBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A condition of somebody's own that shows another trial's map, which nobody else loads for this trial."""
    folder = bundle(trials=3, practice=0, conditions=("none", "saliency"))
    first = Bundle(folder).manifest.trials[0].assets.target_map
    wrong = replace(CONDITION, shown=lambda trial: ShownAssets(trial.assets.target, first, no_examples(trial)))
    monkeypatch.setattr("study.conditions.saliency.CONDITION", wrong)
    with pytest.raises(ForetellError, match="'saliency' loads 1 image") as refused:
        service.researcher.open_study(folder, 1)
    assert "response times would not compare" in str(refused.value)
