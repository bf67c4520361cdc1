"""What a replay says of a participation, against what the test did; and to whom it says nothing."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.errors import ForetellError
from study.bundle import Bundle
from study.participation.payloads import CheckResponses, ClientEvent, TrialResponse
from study.service import Service
from study.store import audit
from tests.study.collection.test_monitor import MINUTE, Clock
from tests.study.participation.test_withdrawal import code_of

MakeBundle = Callable[..., Path]
CHECK = {"tries": 2, "questions": [{"text": "Which?", "options": ["this", "that"], "answer": "that"}]}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def collecting(database: str, tmp_path: Path, clock: Clock, bundle: MakeBundle) -> Iterator[Service]:
    config = {"check": CHECK, "pacing": {"catch": 1, "confidence": True}}
    with Service(tmp_path / "home", clock=clock) as service:
        service.researcher.open_study(bundle(trials=3, practice=1, config=config), per_condition=2)
        yield service


def take_part(service: Service, clock: Clock, sides: str = "left right left right left") -> tuple[str, str]:
    """Take part: the check fails once; each part takes another number of minutes. Return token and pseudonym."""
    token = service.participant.begin("demo", participant="p")
    clock.now += 2 * MINUTE
    service.participant.consent(token, True)
    service.participant.ready(token)
    service.participant.check(token, CheckResponses(attempt=1, answers=[0]))
    service.participant.ready(token)
    clock.now += 3 * MINUTE
    service.participant.check(token, CheckResponses(attempt=2, answers=[1]))
    service.participant.ready(token, "example")
    for index, side in enumerate(sides.split()):
        clock.now += MINUTE
        respond(service, token, index, side)
        if index == 2:
            event = ClientEvent(event_id="0123456789", kind="hidden", trial_index=2, t_client_ms=5.0, payload={"ms": 7})
            service.participant.events(token, [event])
    return token, service.researcher.monitor("demo").participants["participant"][0]


def respond(service: Service, token: str, index: int, side: str) -> None:
    sent = TrialResponse(
        trial_index=index, attempt_id=str(uuid.uuid4()), side=side, input="key", rt_ms=900.0 + index, confidence=0.5  # type: ignore[arg-type]
    )  # fmt: skip
    assert service.participant.record(token, sent).code == 201


def test_a_session_that_collects_is_replayed_only_after_unblinding(collecting: Service, clock: Clock) -> None:
    """Catches a replay that unblinds without a trace."""
    _, name = take_part(collecting, clock)
    with pytest.raises(ForetellError, match="cannot be replayed yet"):
        collecting.researcher.replay("demo", name)
    collecting.researcher.unblind("demo", "a pilot")
    assert collecting.researcher.replay("demo", name).participant == name
    acts = collecting.workspace.store.read(audit.acts)
    assert [act["act"] for act in acts[-2:]] == ["unblinded", "replayed a session"]
    assert name[1:] not in acts[-1]["detail_json"]


def test_a_closed_study_is_replayed_and_unblinding_another_opens_nothing(
    collecting: Service, clock: Clock, bundle: MakeBundle
) -> None:
    """Catches a check of the wrong study's entry in the audit trail."""
    _, name = take_part(collecting, clock)
    collecting.researcher.open_study(bundle(name="other", trials=3, practice=0), per_condition=1)
    collecting.researcher.unblind("other", "a pilot")
    with pytest.raises(ForetellError, match="cannot be replayed yet"):
        collecting.researcher.replay("demo", name)
    collecting.researcher.close_study("demo")
    assert len(collecting.researcher.replay("demo", name).trials) == 5


def test_what_is_replayed_is_what_was_done(collecting: Service, clock: Clock) -> None:
    """Catches swapped sides, a response under the wrong trial, and events out of order."""
    token, name = take_part(collecting, clock)
    collecting.participant.finish(token)
    collecting.researcher.close_study("demo")
    replay = collecting.researcher.replay("demo", name)
    manifest = Bundle(collecting.researcher.studies()[0].folder).manifest
    options = {trial.id: trial.options for trial in (*manifest.trials, *manifest.practice)}
    assert [trial.side for trial in replay.trials] == ["left", "right", "left", "right", "left"]
    assert [trial.response["rt_ms"] for trial in replay.trials] == [900.0, 901.0, 902.0, 903.0, 904.0]
    assert [trial.phase for trial in replay.trials].count("catch") == 1
    for trial in replay.trials:
        assert trial.choice == trial.screen[trial.side or ""]["name"]
        if trial.phase != "catch":
            assert {trial.screen[side]["name"] for side in ("left", "right")} == set(options[trial.trial.id])
            assert trial.correct is (trial.choice == trial.trial.target)
    frame = collecting.researcher.responses("demo")
    known = {trial.trial.id: (trial.choice, trial.correct) for trial in replay.trials if trial.phase == "main"}
    assert {row.item: (row.choice, bool(row.correct)) for row in frame.itertuples()} == known
    happened = replay.timeline
    assert happened["seconds"].is_monotonic_increasing
    minutes = dict(zip(happened["event"], (happened["seconds"] / 60).round(2), strict=True))  # of each, the last
    assert minutes["Consent was given"] == 2
    assert minutes["The comprehension check was failed"] == 2
    assert minutes["The comprehension check was passed"] == 5
    assert minutes["A response was received"] == 10
    hidden = happened[happened["event"] == "The page was hidden"].iloc[0]
    assert (hidden["trial"], hidden["detail"]) == (3, "ms 7")
    assert happened.iloc[-1]["event"] == "The participation ended"


def test_the_times_of_the_parts_are_those_that_passed(collecting: Service, clock: Clock) -> None:
    """Catches parts that overlap or are counted from the wrong milestone; whoever leaves is not counted."""
    token, _ = take_part(collecting, clock)
    clock.now += 4 * MINUTE
    collecting.participant.finish(token)
    left = collecting.participant.begin("demo", participant="leaves")
    clock.now += 6 * MINUTE
    collecting.participant.consent(left, True)
    times = collecting.researcher.monitor("demo").page_times
    assert dict(zip(times["part"], times["participants"], strict=True)) == {
        "Consent": 2, "Instructions and comprehension check": 1, "Practice": 1, "Trials": 1,
        "Questionnaire and last page": 1,
    }  # fmt: skip
    assert times["Median"].round(2).tolist() == [4.0, 3.0, 1.0, 4.0, 4.0]


def test_nothing_is_left_of_who_withdrew(collecting: Service, clock: Clock) -> None:
    """Catches a replay of erased responses from the plan."""
    token, name = take_part(collecting, clock)
    collecting.participant.withdraw(code_of(collecting, token))
    collecting.researcher.close_study("demo")
    with pytest.raises(ForetellError, match="withdrew"):
        collecting.researcher.replay("demo", name)
    assert collecting.researcher.monitor("demo").page_times.empty
