"""The experiment through its only door, on both real databases: answers, secrecy, what is kept."""

import json
import uuid
from typing import Any

import pytest
from sqlalchemy.exc import DBAPIError

from study.bundle import Bundle
from study.collection.export import DICTIONARY
from study.participation.payloads import ClientEvent
from study.participation.refusals import Refusal
from study.plan.texts import DEFAULTS
from study.service import Service
from study.store import responses
from tests.study.participants import CONDITIONS, MakeBundle, answer, query, take_part, tamper, to_trials

OTHER = "CASE choice WHEN 'a' THEN 'b' ELSE 'a' END"
pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def study(service: Service, bundle: MakeBundle) -> str:
    return service.researcher.open_study(bundle(), per_condition=4)


def test_one_person_from_consent_to_code(service: Service, study: str) -> None:
    token = service.participant.begin(study)
    assert service.participant.state(token)["stage"] == "consent"
    screens = take_part(service, token)
    done = service.participant.state(token)
    assert [screen["index"] for screen in screens] == list(range(15))
    assert done["stage"] == "done"
    assert len(done["code"]) == 10
    assert service.participant.finish(token)["code"] == done["code"]
    frame = service.researcher.responses(study)
    assert list(frame.columns) == list(DICTIONARY)
    assert list(frame["trial"]) == list(range(1, 13))
    assert sorted(frame["item"]) == sorted(f"main-{i}" for i in range(12))
    assert query(service, "SELECT count(*) FROM event WHERE kind = 'answered'") == [(15,)]
    assert service.researcher.verify() == []


def test_correct_means_what_the_ai_chose(service: Service, study: str, bundle: MakeBundle) -> None:
    """Left pressed throughout: `correct` is recomputed from the screens and the manifest, not by the service."""
    token = service.participant.begin(study)
    screens = take_part(service, token)[3:]
    folder = service.researcher.studies()[0].folder
    trials = {trial.id: trial for trial in Bundle(folder).manifest.trials}
    for row, screen in zip(service.researcher.responses(study).to_dict("records"), screens, strict=True):
        trial = trials[row["item"]]
        assert row["choice"] == screen["left"]["name"]
        assert row["correct"] == int(screen["left"]["name"] == trial.target)
        assert (row["category"], row["truth"], row["trial_type"]) == (trial.target, trial.truth, trial.trial_type)


def test_each_condition_is_told_its_assets_and_no_others(service: Service, study: str) -> None:
    manifest = Bundle(service.researcher.studies()[0].folder).manifest
    for name in CONDITIONS:
        screen = to_trials(service, service.participant.begin(study, mode="preview", condition=name))["trial"]
        trial = manifest.practice[0]
        maps = name in ("saliency", "both")
        assert screen["target"] == trial.assets.target
        assert screen["map"] == (trial.assets.target_map if maps else None)
        for side in ("left", "right"):
            mine = [e for e in trial.assets.examples if e.category == screen[side]["name"]]
            wanted = [e.map if maps else e.image for e in mine] if name in ("examples", "both") else []
            assert screen[side]["samples"] == wanted


def test_a_retry_is_acknowledged_and_stored_once(service: Service, study: str) -> None:
    token = service.participant.begin(study)
    to_trials(service, token)
    sent = answer(0)
    codes = [service.participant.record(token, sent).code for _ in range(3)]
    assert codes == [201, 200, 200]
    assert query(service, "SELECT count(*) FROM response") == [(1,)]
    assert service.participant.state(token)["trial"]["index"] == 1


def test_the_first_of_two_answers_stands(service: Service, study: str) -> None:
    token = service.participant.begin(study)
    to_trials(service, token)
    assert service.participant.record(token, answer(0, "left")).code == 201
    late = answer(0, "right")
    assert [service.participant.record(token, late).code for _ in range(2)] == [409, 409]
    assert query(service, "SELECT side FROM response") == [("left",)]
    [(payload, reason)] = query(service, "SELECT payload_json, reason FROM response_conflict")
    assert json.loads(payload)["side"] == "right"
    assert reason == "answered before"


def test_an_attempt_id_cannot_serve_two_trials(service: Service, study: str) -> None:
    token = service.participant.begin(study)
    to_trials(service, token)
    sent = answer(0)
    service.participant.record(token, sent)
    assert service.participant.record(token, answer(1, attempt_id=sent.attempt_id)).code == 409
    assert service.participant.state(token)["trial"]["index"] == 1


@pytest.mark.parametrize("index", [1, 5, 14, 99])
def test_only_the_current_trial_may_be_answered(service: Service, study: str, index: int) -> None:
    token = service.participant.begin(study)
    to_trials(service, token)
    assert service.participant.record(token, answer(index)).code == 425
    assert query(service, "SELECT count(*) FROM response") == [(0,)]


def test_no_answer_before_the_trials_or_after_declining(service: Service, study: str) -> None:
    token = service.participant.begin(study)
    assert service.participant.record(token, answer(0)).code == 425
    assert service.participant.consent(token, False)["stage"] == "declined"
    assert service.participant.record(token, answer(0)).code == 410
    with pytest.raises(Refusal) as refused:
        service.participant.consent(token, True)
    assert refused.value.code == 410
    assert query(service, "SELECT count(*) FROM allocation_slot WHERE state != 'open'") == [(0,)]


def test_nothing_is_allocated_before_the_instructions_are_understood(service: Service, study: str) -> None:
    token = service.participant.begin(study)
    assert query(service, "SELECT condition FROM session") == [(None,)]
    for _ in range(2):  # the second is a retry
        service.participant.consent(token, True)
    assert query(service, "SELECT count(*) FROM allocation_slot WHERE state = 'held'") == [(0,)]
    for _ in range(2):
        service.participant.ready(token)
    assert query(service, "SELECT count(*) FROM allocation_slot WHERE state = 'held'") == [(1,)]


def test_feedback_in_practice_only_and_only_after_the_answer(service: Service, study: str) -> None:
    manifest = Bundle(service.researcher.studies()[0].folder).manifest
    token = service.participant.begin(study)
    state = to_trials(service, token)
    for trial in manifest.practice:
        ack = service.participant.record(token, answer(state["trial"]["index"]))
        assert ack.feedback == f"The AI called this picture “{trial.target}”."
        state = ack.state
    assert service.participant.record(token, answer(3)).feedback is None
    # a practice trial still to come tells nothing, whatever is sent
    other = service.participant.begin(study)
    to_trials(service, other)
    assert service.participant.record(other, answer(2)).feedback is None


def test_the_page_cannot_tell_which_option_the_ai_chose(service: Service, bundle: MakeBundle) -> None:
    """Two studies that differ in nothing but the AI's answers must look the same, trial by trial."""
    seen = {}
    for name, swap in (("straight", False), ("swapped", True)):
        service.researcher.open_study(bundle(name, swap_answers=swap), per_condition=1)
        for condition in CONDITIONS:
            token = service.participant.begin(name, mode="preview", condition=condition)
            screens = take_part(service, token)
            seen[name, condition] = sorted(json.dumps({**screen, "index": 0}, sort_keys=True) for screen in screens)
    for condition in CONDITIONS:
        assert seen["straight", condition] == seen["swapped", condition]


def test_state_before_the_answer_has_no_telling_word(service: Service, study: str) -> None:
    """Keys and values of everything sent before an answer, against a list of what must not be there."""
    for condition in CONDITIONS:
        token = service.participant.begin(study, mode="preview", condition=condition)
        states = [
            service.participant.state(token),
            service.participant.consent(token, True),
            service.participant.ready(token),
        ]
        states.append(service.participant.ready(token, "example"))
        for _ in range(4):
            index = states[-1]["trial"]["index"]
            states.append(service.participant.record(token, answer(index)).state)
        words = {str(word) for state in states for word in _words(state)}
        assert not words & {*CONDITIONS, "adv_incorrect", "std_incorrect", "std_correct"}
        assert not words & {"truth", "alternative", "trial_type", "condition", "ai_choice", "correct", "item", "id"}
        assert not any(word.startswith(("main-", "practice-", "pool/")) for word in words)
        assert service.participant.preload(token) == sorted(service.participant.preload(token))


def _words(content: Any) -> list[Any]:
    if isinstance(content, dict):
        return [word for key, value in content.items() for word in (key, *_words(value))]
    if isinstance(content, list):
        return [word for value in content for word in _words(value)]
    return [content]


def test_events_are_kept_once(service: Service, study: str) -> None:
    token = service.participant.begin(study)
    service.participant.consent(token, True)
    sent = [ClientEvent(event_id=str(uuid.uuid4()), kind="blur", t_client_ms=1.5) for _ in range(3)]
    assert [service.participant.events(token, sent), service.participant.events(token, sent)] == [3, 0]


@pytest.mark.parametrize("table", ["response", "page_event", "trial_plan", "consent", "response_conflict"])
@pytest.mark.parametrize("verb", ["UPDATE {} SET session_id = 'x'", "DELETE FROM {}"])
def test_what_is_kept_cannot_be_changed(service: Service, study: str, table: str, verb: str) -> None:
    token = service.participant.begin(study)
    to_trials(service, token)
    service.participant.record(token, answer(0))
    service.participant.record(token, answer(0))  # a conflict
    service.participant.events(token, [ClientEvent(event_id=str(uuid.uuid4()), kind="blur")])
    with pytest.raises(DBAPIError, match="append-only"):
        query(service, verb.format(table))
    assert query(service, f"SELECT count(*) > 0 FROM {table}") == [(1,)]


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        (f"UPDATE response SET choice = {OTHER} WHERE seq = 5", "Response 5 .* was changed"),
        ("UPDATE response SET rt_ms = rt_ms + 0.001 WHERE seq = 2", "Response 2 .* was changed"),
        ("DELETE FROM response WHERE seq = 7", "Response 8 .* does not follow"),
        ("DELETE FROM response WHERE seq = 1", "Response 2 .* does not follow"),
    ],
)  # fmt: skip
def test_the_chain_shows_tampering(service: Service, study: str, statement: str, complaint: str) -> None:
    """Done to the file itself, the triggers out of the way."""
    take_part(service, service.participant.begin(study))
    assert service.researcher.verify() == []
    tamper(service, statement)
    complaints = service.researcher.workspace.store.read(lambda db: list(responses.find_broken_links(db)))
    assert len(complaints) == 1
    with pytest.raises(AssertionError, match=complaint):
        raise AssertionError(complaints[0])


def test_finish_needs_every_answer(service: Service, study: str) -> None:
    token = service.participant.begin(study)
    to_trials(service, token)
    for index in range(14):
        service.participant.record(token, answer(index))
    with pytest.raises(Refusal) as refused:
        service.participant.finish(token)
    assert refused.value.code == 425
    assert "code" not in service.participant.state(token)


def test_no_code_while_the_database_lacks_an_answer(service: Service, study: str) -> None:
    """The rows are counted, whatever the session's stage says; done to the file itself, the trigger out of the way."""
    token = service.participant.begin(study)
    to_trials(service, token)
    for index in range(15):
        service.participant.record(token, answer(index))
    assert service.participant.state(token)["stage"] == "debrief"
    tamper(service, "DELETE FROM response WHERE trial_index = 3")
    with pytest.raises(Refusal, match="1 responses are still missing"):
        service.participant.finish(token)


def test_the_studys_words_replace_the_defaults(service: Service, bundle: MakeBundle) -> None:
    service.researcher.open_study(bundle("worded", texts={"consent": "Our own text."}), per_condition=1)
    state = service.participant.state(service.participant.begin("worded"))
    assert state["texts"]["consent"] == "Our own text."
    assert state["boxes"] == [DEFAULTS["agree_age"], DEFAULTS["agree"]]


def test_an_unknown_study_is_named(service: Service, study: str) -> None:
    with pytest.raises(Refusal, match=r"'dmo' is not open\. Open: demo") as refused:
        service.participant.begin("dmo")
    assert refused.value.code == 404


@pytest.mark.parametrize(
    "bad",
    [{"rt_ms": -1}, {"rt_ms": float("nan")}, {"rt_ms": float("inf")}, {"attempt_id": "x"}, {"side": "up"},
     {"n_exposures": 0}, {"correct": 1}],
)  # fmt: skip
def test_impossible_answers_do_not_exist(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        answer(0, **bad)
