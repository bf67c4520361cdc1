"""The experiment through its only door, on a real SQLite file."""

import itertools
import json
import shutil
import sqlite3
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.errors import ForetellError
from study.answer import Answer, ClientEvent
from study.bundle import Bundle
from study.frames import COLUMNS
from study.participation import HOLD_NS, Refused
from study.service import Service
from study.texts import DEFAULTS

MakeBundle = Callable[..., Path]
CONDITIONS = ("none", "saliency", "examples", "both")


def answer(index: int, side: str = "left", **values: Any) -> Answer:
    fields = {"attempt_id": str(uuid.uuid4()), "input": "key", "rt_ms": 512.5, **values}
    return Answer(trial_index=index, side=side, **fields)  # type: ignore[arg-type]


def to_trials(service: Service, token: str) -> dict[str, Any]:
    service.consent(token, True)
    return service.ready(token)


def take_part(service: Service, token: str, side: str = "left") -> list[dict[str, Any]]:
    """Answer everything; the screens that were shown."""
    state = to_trials(service, token)
    screens = []
    while state["stage"] in ("practice", "main"):
        screens.append(state["trial"])
        ack = service.record(token, answer(state["trial"]["index"], side))
        assert ack.code == 201
        state = ack.state
    service.finish(token)
    return screens


def query(service: Service, sql: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(service.home / "foretell.db") as db:
        return db.execute(sql).fetchall()


@pytest.fixture
def study(service: Service, bundle: MakeBundle) -> str:
    return service.open_study(bundle(), per_condition=4)


def test_one_person_from_consent_to_code(service: Service, study: str) -> None:
    token = service.begin(study)
    assert service.state(token)["stage"] == "consent"
    screens = take_part(service, token)
    done = service.state(token)
    assert [screen["index"] for screen in screens] == list(range(15))
    assert done["stage"] == "done"
    assert len(done["code"]) == 10
    assert service.finish(token)["code"] == done["code"]
    frame = service.responses(study)
    assert tuple(frame.columns) == COLUMNS
    assert list(frame["trial"]) == list(range(1, 13))
    assert sorted(frame["item"]) == sorted(f"main-{i}" for i in range(12))
    assert query(service, "SELECT count(*) FROM event WHERE kind = 'answered'") == [(15,)]
    assert service.verify_chain() == []


def test_correct_means_what_the_ai_chose(service: Service, study: str, bundle: MakeBundle) -> None:
    """Left pressed throughout: `correct` is recomputed from the screens and the manifest, not by the service."""
    token = service.begin(study)
    screens = take_part(service, token)[3:]
    folder = service.studies()[0].folder
    trials = {trial.id: trial for trial in Bundle(folder).manifest.trials}
    for row, screen in zip(service.responses(study).to_dict("records"), screens, strict=True):
        trial = trials[row["item"]]
        assert row["choice"] == screen["left"]["name"]
        assert row["correct"] == int(screen["left"]["name"] == trial.target)
        assert (row["category"], row["truth"], row["trial_type"]) == (trial.target, trial.truth, trial.trial_type)


def test_each_condition_is_told_its_assets_and_no_others(service: Service, study: str) -> None:
    manifest = Bundle(service.studies()[0].folder).manifest
    for name in CONDITIONS:
        screen = to_trials(service, service.begin(study, mode="preview", condition=name))["trial"]
        trial = manifest.practice[0]
        maps = name in ("saliency", "both")
        assert screen["target"] == trial.assets.target
        assert screen["map"] == (trial.assets.target_map if maps else None)
        for side in ("left", "right"):
            mine = [e for e in trial.assets.examples if e.category == screen[side]["name"]]
            wanted = [e.map if maps else e.image for e in mine] if name in ("examples", "both") else []
            assert screen[side]["samples"] == wanted


def test_a_retry_is_acknowledged_and_stored_once(service: Service, study: str) -> None:
    token = service.begin(study)
    to_trials(service, token)
    sent = answer(0)
    codes = [service.record(token, sent).code for _ in range(3)]
    assert codes == [201, 200, 200]
    assert query(service, "SELECT count(*) FROM response") == [(1,)]
    assert service.state(token)["trial"]["index"] == 1


def test_the_first_of_two_answers_stands(service: Service, study: str) -> None:
    token = service.begin(study)
    to_trials(service, token)
    assert service.record(token, answer(0, "left")).code == 201
    late = answer(0, "right")
    assert [service.record(token, late).code for _ in range(2)] == [409, 409]
    assert query(service, "SELECT side FROM response") == [("left",)]
    [(payload, reason)] = query(service, "SELECT payload_json, reason FROM response_conflict")
    assert json.loads(payload)["side"] == "right"
    assert reason == "answered before"


def test_an_attempt_id_cannot_serve_two_trials(service: Service, study: str) -> None:
    token = service.begin(study)
    to_trials(service, token)
    sent = answer(0)
    service.record(token, sent)
    assert service.record(token, answer(1, attempt_id=sent.attempt_id)).code == 409
    assert service.state(token)["trial"]["index"] == 1


@pytest.mark.parametrize("index", [1, 5, 14, 99])
def test_only_the_current_trial_may_be_answered(service: Service, study: str, index: int) -> None:
    token = service.begin(study)
    to_trials(service, token)
    assert service.record(token, answer(index)).code == 425
    assert query(service, "SELECT count(*) FROM response") == [(0,)]


def test_no_answer_before_the_trials_or_after_declining(service: Service, study: str) -> None:
    token = service.begin(study)
    assert service.record(token, answer(0)).code == 425
    assert service.consent(token, False)["stage"] == "declined"
    assert service.record(token, answer(0)).code == 410
    with pytest.raises(Refused) as refused:
        service.consent(token, True)
    assert refused.value.code == 410
    assert query(service, "SELECT count(*) FROM allocation_slot WHERE state != 'open'") == [(0,)]


def test_nothing_is_allocated_before_consent(service: Service, study: str) -> None:
    token = service.begin(study)
    assert query(service, "SELECT condition FROM session") == [(None,)]
    service.consent(token, True)
    service.consent(token, True)  # a retry
    assert query(service, "SELECT count(*) FROM allocation_slot WHERE state = 'held'") == [(1,)]


def test_feedback_in_practice_only_and_only_after_the_answer(service: Service, study: str) -> None:
    manifest = Bundle(service.studies()[0].folder).manifest
    token = service.begin(study)
    state = to_trials(service, token)
    for trial in manifest.practice:
        ack = service.record(token, answer(state["trial"]["index"]))
        assert ack.feedback == f"The AI called this picture “{trial.target}”."
        state = ack.state
    assert service.record(token, answer(3)).feedback is None
    # a practice trial still to come tells nothing, whatever is sent
    other = service.begin(study)
    to_trials(service, other)
    assert service.record(other, answer(2)).feedback is None


def test_the_page_cannot_tell_which_option_the_ai_chose(service: Service, bundle: MakeBundle) -> None:
    """Two studies that differ in nothing but the AI's answers must look the same, trial by trial."""
    seen = {}
    for name, swap in (("straight", False), ("swapped", True)):
        service.open_study(bundle(name, swap_answers=swap), per_condition=1)
        for condition in CONDITIONS:
            token = service.begin(name, mode="preview", condition=condition)
            screens = take_part(service, token)
            seen[name, condition] = sorted(json.dumps({**screen, "index": 0}, sort_keys=True) for screen in screens)
    for condition in CONDITIONS:
        assert seen["straight", condition] == seen["swapped", condition]


def test_state_before_the_answer_has_no_telling_word(service: Service, study: str) -> None:
    """Keys and values of everything sent before an answer, against a list of what must not be there."""
    for condition in CONDITIONS:
        token = service.begin(study, mode="preview", condition=condition)
        states = [service.state(token), service.consent(token, True), service.ready(token)]
        for _ in range(4):
            index = states[-1]["trial"]["index"]
            states.append(service.record(token, answer(index)).state)
        words = {str(word) for state in states for word in _words(state)}
        assert not words & {*CONDITIONS, "adv_incorrect", "std_incorrect", "std_correct"}
        assert not words & {"truth", "alternative", "trial_type", "condition", "ai_choice", "correct", "item", "id"}
        assert not any(word.startswith(("main-", "practice-", "pool/")) for word in words)
        assert service.preload(token) == sorted(service.preload(token))


def _words(content: Any) -> list[Any]:
    if isinstance(content, dict):
        return [word for key, value in content.items() for word in (key, *_words(value))]
    if isinstance(content, list):
        return [word for value in content for word in _words(value)]
    return [content]


def test_sixty_arrivals_at_once_are_balanced(service: Service, bundle: MakeBundle) -> None:
    study = service.open_study(bundle(), per_condition=15)
    barrier = threading.Barrier(60)
    failed: list[BaseException] = []

    def arrive() -> None:
        try:
            barrier.wait(30)
            service.consent(service.begin(study), True)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=arrive) for _ in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    counts = Counter(query(service, "SELECT condition, side_flip FROM session"))
    by_condition = Counter(condition for condition, _ in counts.elements())
    assert by_condition == dict.fromkeys(CONDITIONS, 15)
    assert all(abs(counts[c, 0] - counts[c, 1]) == 1 for c in CONDITIONS)  # 15 is odd: 7 and 8
    assert query(service, "SELECT count(DISTINCT session_id) FROM allocation_slot") == [(60,)]


def test_recruitment_stopped_early_is_balanced_too(service: Service, bundle: MakeBundle) -> None:
    """Catches slots handed out in another order than that of their blocks."""
    study = service.open_study(bundle(), per_condition=15)
    for _ in range(8):
        service.consent(service.begin(study), True)
    taken = Counter(c for (c,) in query(service, "SELECT condition FROM session"))
    assert taken == dict.fromkeys(CONDITIONS, 2)
    assert set(query(service, "SELECT condition, side_flip FROM session")) == set(itertools.product(CONDITIONS, (0, 1)))


def test_a_full_study_says_so(service: Service, bundle: MakeBundle) -> None:
    study = service.open_study(bundle(), per_condition=1)
    early = [service.begin(study) for _ in range(5)]
    stages = [service.consent(token, True)["stage"] for token in early]
    assert stages == ["instructions"] * 4 + ["full"]
    with pytest.raises(Refused, match="All places") as refused:
        service.begin(study)
    assert refused.value.code == 410
    assert service.open_study(service.studies()[0].folder, per_condition=2) == study
    assert service.consent(service.begin(study), True)["stage"] == "instructions"


def test_an_abandoned_place_is_given_away_and_its_holder_may_still_finish(tmp_path: Path, bundle: MakeBundle) -> None:
    now = [10**18]
    with Service(tmp_path, clock=lambda: now[0]) as service:
        study = service.open_study(bundle(conditions=("none",), trials=2, practice=0), per_condition=1)
        slow = service.begin(study)
        to_trials(service, slow)
        with pytest.raises(Refused, match="All places"):
            service.begin(study)
        now[0] += HOLD_NS + 1
        quick = service.begin(study)
        assert service.consent(quick, True)["stage"] == "instructions"
        service.ready(quick)
        for token in (slow, quick):
            for index in range(2):
                assert service.record(token, answer(index)).code == 201
            assert service.finish(token)["code"]
        assert query(service, "SELECT state FROM allocation_slot") == [("done",)]


def test_the_same_person_resumes_and_the_old_page_ends(service: Service, study: str) -> None:
    first = service.begin(study, participant="5f3a")
    to_trials(service, first)
    service.record(first, answer(0))
    second = service.begin(study, participant="5f3a")
    assert service.state(second)["trial"]["index"] == 1
    with pytest.raises(Refused) as refused:
        service.state(first)
    assert refused.value.code == 401
    assert query(service, "SELECT count(*), max(n_resumes) FROM session") == [(1, 1)]
    assert query(service, "SELECT count(*) FROM allocation_slot WHERE state = 'held'") == [(1,)]
    service.begin(study, participant="other")
    assert query(service, "SELECT count(*) FROM session") == [(2,)]


def test_no_id_and_no_token_is_in_the_database(service: Service, study: str) -> None:
    token = service.begin(study, participant="5f3a9c0d1e2b3c4d5e6f7a8b")
    take_part(service, token)
    with sqlite3.connect(service.home / "foretell.db") as db:
        dump = "\n".join(db.iterdump())
    assert "5f3a9c0d1e2b3c4d5e6f7a8b" not in dump
    assert token not in dump
    assert (service.home / "participants.key").stat().st_mode & 0o077 == 0


def test_a_session_survives_a_restart(tmp_path: Path, bundle: MakeBundle) -> None:
    with Service(tmp_path) as service:
        study = service.open_study(bundle(), per_condition=1)
        token = service.begin(study, participant="x")
        to_trials(service, token)
        service.record(token, answer(0))
        before = service.state(token)
    with Service(tmp_path) as service:
        assert service.state(token) == before
        assert service.state(service.begin(study, participant="x")) == before


def test_previews_and_simulations_leave_the_allocation_alone(service: Service, study: str) -> None:
    for condition in CONDITIONS:
        take_part(service, service.begin(study, mode="preview", condition=condition))
    token = service.begin(study, mode="sim")
    state = to_trials(service, token)
    assert service.record(token, answer(0)).code == 422  # a simulated person has no keyboard
    assert service.record(token, answer(state["trial"]["index"], input="sim")).code == 201
    slots = service.studies()[0].slots
    assert slots["live"] == {condition: {"open": 4} for condition in CONDITIONS}
    assert sum(n for states in slots["sim"].values() for n in states.values()) == 4
    assert service.responses(study).empty
    assert set(service.responses(study, ("preview",))["mode"]) == {"preview"}
    with pytest.raises(ForetellError, match="no condition 'salency'"):
        service.begin(study, mode="preview", condition="salency")


def test_sides_follow_the_slot(service: Service, study: str) -> None:
    """Option a stands left, except with side_flip; over all slots both occur, fixed within a person."""
    seen = set()
    options = {trial.id: trial.options for trial in Bundle(service.studies()[0].folder).manifest.trials}
    for _ in range(16):
        token = service.begin(study)
        screens = take_part(service, token)
        [(session_id, flip)] = query(
            service, "SELECT session_id, side_flip FROM session ORDER BY started_at DESC LIMIT 1"
        )
        items = dict(query(service, f"SELECT trial_index, item_id FROM trial_plan WHERE session_id = '{session_id}'"))
        for screen in screens[3:]:
            a, b = options[items[screen["index"]]]
            assert (screen["left"]["name"], screen["right"]["name"]) == ((b, a) if flip else (a, b))
        seen.add(flip)
    assert seen == {0, 1}


def test_orders_differ_and_never_pile_up(service: Service, study: str) -> None:
    manifest = Bundle(service.studies()[0].folder).manifest
    chosen = {trial.id: trial.ai_choice for trial in manifest.trials}
    for _ in range(8):
        service.consent(service.begin(study), True)
    plans = query(
        service, "SELECT session_id, item_id, left_is FROM trial_plan WHERE phase='main' ORDER BY 1, trial_index"
    )
    orders = set()
    for _, rows in itertools.groupby(plans, key=lambda row: row[0]):
        listed = list(rows)
        orders.add(tuple(item for _, item, _ in listed))
        left = [chosen[item] == left_is for _, item, left_is in listed]
        assert max(len(list(run)) for _, run in itertools.groupby(left)) <= 3
    assert len(orders) == 8


def test_a_new_version_is_for_new_people_only(service: Service, bundle: MakeBundle) -> None:
    old, new = bundle(), bundle(seed=8)
    study = service.open_study(old, per_condition=1)
    token = service.begin(study, participant="early")
    screen = to_trials(service, token)["trial"]
    service.open_study(new, per_condition=1)
    assert [status.state for status in service.studies()] == ["superseded", "open"]
    assert service.state(token)["trial"] == screen
    assert service.state(service.begin(study, participant="early"))["trial"] == screen
    take_part(service, service.begin(study))
    assert set(service.responses(study)["study_hash"]) == {Bundle(new).study_hash}
    assert service.asset(study, screen["target"]).is_file()
    service.open_study(old, per_condition=1)
    assert [status.state for status in service.studies()] == ["open", "superseded"]


def test_a_study_opened_elsewhere_is_seen_at_once(service: Service, bundle: MakeBundle) -> None:
    """The command line opens a study while the server runs: two services, one file, no restart."""
    with Service(service.home) as other:
        study = other.open_study(bundle(), per_condition=2)
        tokens = [door.begin(study) for door in (service, other)]
        take_part(service, tokens[1])
        take_part(other, tokens[0])
    assert len(service.responses(study)) == 24
    assert service.verify_chain() == []


def test_a_closed_study_lets_people_finish_but_nobody_in(service: Service, study: str) -> None:
    token = service.begin(study)
    service.close_study(study)
    with pytest.raises(Refused, match="not open"):
        service.begin(study)
    take_part(service, token)
    with pytest.raises(Refused, match="not open"):
        service.close_study(study)


def test_opening_the_same_study_again_changes_nothing(service: Service, study: str) -> None:
    before = service.studies()
    service.open_study(before[0].folder, per_condition=4)
    assert service.studies() == before


def test_a_tampered_bundle_is_refused(service: Service, bundle: MakeBundle) -> None:
    folder = bundle()
    victim = next((folder / "assets").iterdir())
    victim.write_bytes(victim.read_bytes() + b"x")
    with pytest.raises(ForetellError, match="was changed since the study was frozen"):
        service.open_study(folder, per_condition=1)
    shutil.rmtree(folder)
    with pytest.raises(ForetellError, match="No study at"):
        service.open_study(folder, per_condition=1)


def test_only_the_studys_own_pictures_are_served(service: Service, study: str) -> None:
    for name in ("../manifest", "0" * 64, "../../foretell.db"):
        with pytest.raises(ForetellError, match="no such picture"):
            service.asset(study, name)


def test_events_are_kept_once(service: Service, study: str) -> None:
    token = service.begin(study)
    sent = [ClientEvent(event_id=str(uuid.uuid4()), kind="blur", t_client_ms=1.5) for _ in range(3)]
    assert [service.events(token, sent), service.events(token, sent)] == [3, 0]


@pytest.mark.parametrize("table", ["response", "event", "trial_plan", "consent", "response_conflict"])
@pytest.mark.parametrize("verb", ["UPDATE {} SET session_id = 'x'", "DELETE FROM {}"])
def test_what_is_kept_cannot_be_changed(service: Service, study: str, table: str, verb: str) -> None:
    token = service.begin(study)
    to_trials(service, token)
    service.record(token, answer(0))
    service.record(token, answer(0))  # a conflict
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        query(service, verb.format(table))
    assert query(service, f"SELECT count(*) > 0 FROM {table}") == [(1,)]


@pytest.mark.parametrize(
    ("tamper", "complaint"),
    [
        ("UPDATE response SET choice = iif(choice = 'a', 'b', 'a') WHERE seq = 5", "Answer 5 .* was changed"),
        ("UPDATE response SET rt_ms = rt_ms + 0.001 WHERE seq = 2", "Answer 2 .* was changed"),
        ("DELETE FROM response WHERE seq = 7", "Answer 8 .* does not follow"),
        ("DELETE FROM response WHERE seq = 1", "Answer 2 .* does not follow"),
    ],
)  # fmt: skip
def test_the_chain_shows_tampering(service: Service, study: str, tamper: str, complaint: str) -> None:
    """Done to the file itself, the triggers out of the way."""
    take_part(service, service.begin(study))
    assert service.verify_chain() == []
    with sqlite3.connect(service.home / "foretell.db") as db:
        db.execute("DROP TRIGGER response_no_update")
        db.execute("DROP TRIGGER response_no_delete")
        db.execute(tamper)
    complaints = service.verify_chain()
    assert len(complaints) == 1
    with pytest.raises(AssertionError, match=complaint):
        raise AssertionError(complaints[0])


def test_finish_needs_every_answer(service: Service, study: str) -> None:
    token = service.begin(study)
    to_trials(service, token)
    for index in range(14):
        service.record(token, answer(index))
    with pytest.raises(Refused) as refused:
        service.finish(token)
    assert refused.value.code == 425
    assert "code" not in service.state(token)


def test_no_code_while_the_database_lacks_an_answer(service: Service, study: str) -> None:
    """The rows are counted, whatever the session's stage says; done to the file itself, the trigger out of the way."""
    token = service.begin(study)
    to_trials(service, token)
    for index in range(15):
        service.record(token, answer(index))
    assert service.state(token)["stage"] == "debrief"
    with sqlite3.connect(service.home / "foretell.db") as db:
        db.execute("DROP TRIGGER response_no_delete")
        db.execute("DELETE FROM response WHERE trial_index = 3")
    with pytest.raises(Refused, match="1 answers are still missing"):
        service.finish(token)


def test_the_studys_words_replace_the_defaults(service: Service, bundle: MakeBundle) -> None:
    service.open_study(bundle("worded", texts={"consent": "Our own text."}), per_condition=1)
    state = service.state(service.begin("worded"))
    assert state["texts"]["consent"] == "Our own text."
    assert state["texts"]["agree"] == DEFAULTS["agree"]


def test_an_unknown_study_is_named(service: Service, study: str) -> None:
    with pytest.raises(Refused, match=r"'dmo' is not open\. Open: demo") as refused:
        service.begin("dmo")
    assert refused.value.code == 404


@pytest.mark.parametrize(
    "bad",
    [{"rt_ms": -1}, {"rt_ms": float("nan")}, {"rt_ms": float("inf")}, {"attempt_id": "x"}, {"side": "up"},
     {"n_exposures": 0}, {"correct": 1}],
)  # fmt: skip
def test_impossible_answers_do_not_exist(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        answer(0, **bad)
