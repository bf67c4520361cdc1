"""What a script may leave in the database, and what is kept as it was sent."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from study.collection import export
from study.participation.payloads import ClientEvent, QuestionnaireResponses, TrialResponse
from study.participation.refusals import Refusal
from study.participation.responding import EVENTS_A_TRIAL, EVENTS_AT_LEAST, MOST_CONFLICTS
from study.service import Service
from tests.study.participants import MakeBundle, answer, query, take_part, to_trials

SCALE = [{"id": "hard", "kind": "scale", "text": "How hard?"}]


@pytest.fixture
def study(service: Service, bundle: MakeBundle) -> str:
    return service.researcher.open_study(bundle(config={"questionnaire": SCALE}), per_condition=4)


@pytest.fixture
def token(service: Service, study: str) -> str:
    token = service.participant.begin(study)
    to_trials(service, token)
    return token


def events(first: int, count: int) -> list[ClientEvent]:
    return [ClientEvent(event_id=f"event-{n:06}", kind="blur") for n in range(first, first + count)]


def test_a_session_has_a_budget_of_events(service: Service, token: str) -> None:
    """One session could fill the disk: 15 GB an hour. What the server itself notes is not cut off."""
    budget = EVENTS_AT_LEAST + 15 * EVENTS_A_TRIAL
    new = [service.participant.events(token, events(n, 100)) for n in range(0, 3000, 100)]
    assert sum(new) == budget
    assert service.participant.record(token, answer(0)).code == 201
    assert query(service, "SELECT count(*) FROM event WHERE kind = 'answered'") == [(1,)]
    [(size,)] = query(service, "SELECT sum(length(payload_json)) FROM event")
    assert size <= budget * 600


def test_before_a_place_it_is_smaller(service: Service, study: str) -> None:
    """Sessions without a place cost nothing to start, and there is no end of them."""
    token = service.participant.begin(study)
    service.participant.consent(token, True)
    assert sum(service.participant.events(token, events(n, 50)) for n in range(0, 400, 50)) == 100


def test_below_the_reserve_only_responses_are_kept(
    service: Service, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("study.workspace.disk.LEAST_FREE", 1 << 62)
    assert service.participant.events(token, events(0, 3)) == 0
    assert service.participant.record(token, answer(0)).code == 201


def test_second_responses_are_not_kept_without_end(service: Service, token: str) -> None:
    service.participant.record(token, answer(0))
    assert {service.participant.record(token, answer(0)).code for _ in range(MOST_CONFLICTS + 50)} == {409}
    assert query(service, "SELECT count(*) FROM response_conflict") == [(MOST_CONFLICTS,)]


def test_the_same_attempt_with_the_other_side_is_no_retry(service: Service, token: str) -> None:
    """It was told "kept before", and the page would have shown what is not kept."""
    sent = answer(0, "left")
    other = sent.model_copy(update={"side": "right"})
    assert [service.participant.record(token, each).code for each in (sent, sent, other, sent)] == [201, 200, 409, 200]
    [(payload,)] = query(service, "SELECT payload_json FROM response_conflict")
    assert json.loads(payload)["side"] == "right"


GOOD = {"trial_index": 0, "attempt_id": "a" * 8, "side": "left", "input": "key", "rt_ms": 512.5}


@pytest.mark.parametrize(
    "bad",
    [
        {"rt_ms": 1e13},
        {"rt_ms": "512.5"},
        {"rt_ms": True},
        {"trial_index": "0"},
        {"resumed": 1},
        {"n_exposures": 1.5},
        {"onset_ms": 900.0, "event_ms": 400.0},
        {"onset_ms": 100.0, "event_ms": 1000.0},
        {"blur_ms": 1e12},
    ],
    ids=str,
)
def test_impossible_responses_are_refused(bad: dict[str, Any]) -> None:
    TrialResponse.model_validate_json(json.dumps(GOOD))
    TrialResponse.model_validate_json(json.dumps({**GOOD, "onset_ms": 100.25, "event_ms": 612.75}))
    with pytest.raises(ValueError, match="validation error"):
        TrialResponse.model_validate_json(json.dumps({**GOOD, **bad}))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**30, [1], {"a": 1}, "x" * 700], ids=str)
def test_an_event_holds_plain_values(value: Any) -> None:
    sent = {"event_id": "a" * 8, "kind": "clock"}
    ClientEvent.model_validate_json(json.dumps({**sent, "payload": {"a": -1.5, "b": "ä", "c": None, "d": True}}))
    with pytest.raises(ValueError, match="payload"):
        ClientEvent.model_validate_json(json.dumps({**sent, "payload": {"offset_ms": value}}))


def test_true_is_no_point_of_a_scale(service: Service, token: str) -> None:
    for index in range(15):
        service.participant.record(token, answer(index))
    with pytest.raises(ValueError, match="validation error"):
        QuestionnaireResponses.model_validate_json('{"answers": {"hard": true}}')
    with pytest.raises(Refusal, match="has no valid response"):
        service.participant.fill(token, QuestionnaireResponses.model_construct(answers={"hard": True}))
    assert service.participant.fill(token, QuestionnaireResponses(answers={"hard": 1}))["stage"] == "debrief"


@pytest.mark.parametrize("forged", ['"later"', '{"a": 1}', "true", "1e300", "NaN", "[]"])
def test_a_forged_clock_does_not_break_the_export(
    service: Service, bundle: MakeBundle, tmp_path: Path, forged: str
) -> None:
    """A column of numbers with one text in it could not be written as Parquet. Put in past the checks of today."""
    study = service.researcher.open_study(bundle("plain"), per_condition=4)
    for n in range(2):
        take_part(service, service.participant.begin(study))
        payload = '{"offset_ms": 12.5, "round_trip_ms": 3}' if n else f'{{"offset_ms": {forged}, "round_trip_ms": 1}}'
        [(session,)] = query(service, "SELECT session_id FROM session ORDER BY started_at DESC LIMIT 1")
        query(
            service,
            f"INSERT INTO page_event(event_id, session_id, kind, received_at, payload_json) "
            f"VALUES ('clock-{n}', '{session}', 'clock', 1, '{payload}')",
        )
    assert list(service.researcher.load_participants(study)["clock_offset_ms"].fillna(0)) == [0, 12.5]
    service.researcher.load_participants(study).to_parquet(tmp_path / "persons.parquet")
    export.export(service.researcher, study, tmp_path / "responses.parquet")
    assert pd.read_parquet(tmp_path / "responses.parquet").shape[0] == 24
