"""Messages to participants: whom they reach and when, and what nobody may send."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable

import pytest

from core.errors import ForetellError
from study.participation.payloads import ClientEvent
from study.participation.refusals import Refusal
from study.service import Service
from study.store import audit
from tests.study.participants import MakeBundle, answer, query, take_part, to_trials

MANAGER = "manager@example.org"
SCRIPT = "<script>alert(1)</script> & {name}\n\nThe server restarts at 15:00."


@pytest.fixture
def study(service: Service, bundle: MakeBundle) -> str:
    study = service.researcher.open_study(bundle(), per_condition=3)
    for role in ("owner", "editor", "viewer", "manager"):
        service.researcher.set_member(study, f"{role}@example.org", role)
    return study


def begin(service: Service, study: str, go: Callable[[Service, str], object] = to_trials) -> tuple[str, str]:
    """Bring a participant to the trials, or elsewhere; return their token and name."""
    token = service.participant.begin(study)
    go(service, token)
    return token, str(service.researcher.monitor(study).participants.iloc[0]["participant"])


def read(service: Service, token: str) -> list[str]:
    """Read the new messages as the page does, which then says so."""
    told = service.participant.messages(token)
    events = [
        ClientEvent(event_id=str(uuid.uuid4()), kind="message", payload={"number": one["number"]}) for one in told
    ]
    service.participant.events(token, events)
    return [str(one["text"]) for one in told]


@pytest.mark.usefixtures("database")
def test_a_message_reaches_those_who_are_in_the_study_once(service: Service, study: str) -> None:
    """Catches one for who came later, has ended or has not agreed, one that is shown twice, and a changed text."""
    one, one_name = begin(service, study)
    other, _ = begin(service, study, lambda service, token: service.participant.consent(token, True))
    done, _ = begin(service, study, take_part)
    reading, _ = begin(service, study, lambda *_: None)
    manager = service.act_as(MANAGER)
    assert manager.send_message(study, f"  {SCRIPT}  \n") == 2
    assert manager.send_message(study, "For you", one_name) == 1
    late, _ = begin(service, study)
    to_trials(service, reading)  # agreed after it was sent
    told = [read(service, token) for token in (one, other, done, late, reading)]
    assert told == [[SCRIPT, "For you"], [SCRIPT], [], [], []]
    assert [read(service, token) for token in (one, other)] == [[], []]
    table = manager.list_messages(study)
    assert table[["author", "recipient", "message", "sent", "shown"]].to_numpy().tolist() == [
        [MANAGER, "all", SCRIPT, 2, 2], [MANAGER, one_name, "For you", 1, 1],
    ]  # fmt: skip
    counts = service.researcher.load_participants(study).set_index("participant")["messages"]
    assert (counts[one_name], sorted(counts)) == (2, [0, 0, 0, 1, 2])
    acts = [row for row in service.workspace.store.read(audit.acts) if row["act"] == "sent a message"]
    mine = f"SELECT session_id FROM session WHERE substr(participant_id, 1, 16) = '{one_name[1:]}'"
    [(session,)] = query(service, mine)
    assert [(row["actor"], json.loads(row["detail_json"])) for row in acts] == [
        (MANAGER, {"study": study, "session": None, "text": SCRIPT, "participants": 2}),
        (MANAGER, {"study": study, "session": session, "text": "For you", "participants": 1}),
    ]
    assert service.researcher.verify() == []


def test_a_message_changes_no_trial(service: Service, study: str) -> None:
    """Catches a message in the state of a trial, which its page would show between two of them."""
    token, _ = begin(service, study)
    before = service.participant.state(token)
    service.researcher.send_message(study, "Hello")
    assert service.participant.state(token) == before
    assert "Hello" not in json.dumps(service.participant.record(token, answer(0)).state)
    service.participant.withdraw(before["withdrawal_code"])
    assert service.participant.messages(token) == []


def test_what_may_not_be_sent(service: Service, study: str, bundle: MakeBundle) -> None:
    """Catches roles that may not, another study's participant, a finished one, and texts that no page can show."""
    other = service.researcher.open_study(bundle(name="other"), per_condition=1)
    stranger, theirs = begin(service, other)
    manager = service.act_as(MANAGER)
    with pytest.raises(ForetellError, match="No participant is in demo now"):
        manager.send_message(study, "Hello")
    token, mine = begin(service, study)
    _, ended = begin(service, study, take_part)
    for address in ("editor@example.org", "viewer@example.org", "stranger@example.org"):
        for act in (lambda who: who.send_message(study, "Hello"), lambda who: who.list_messages(study)):
            with pytest.raises(Refusal) as refused:
                act(service.act_as(address))
            assert refused.value.code == 403
    with pytest.raises(Refusal, match="no role in a study 'other'"):
        manager.send_message(other, "Hello")
    for text, whom, said in (
        ("Hello", theirs, "No participant of 'demo'"),
        ("Hello", ended, "is not in the study now"),
        (" \n ", "", "Write the message"),
        ("x" * 10_000, "", r"10,000 characters\. Shorten it to 500"),
    ):
        with pytest.raises(ForetellError, match=said):
            manager.send_message(study, text, whom)
    with pytest.raises(Refusal) as unknown:
        service.participant.messages("no-token")
    assert unknown.value.code == 401
    assert manager.send_message(study, "x" * 500, mine) == 1
    assert service.participant.messages(stranger) == []
    assert len(manager.list_messages(study)) == 1
    odd: tuple[dict[str, object], ...] = ({}, {"number": "1"}, {"number": None}, {"number": True})
    events = [ClientEvent(event_id=str(uuid.uuid4()), kind="message", payload=payload) for payload in odd]
    assert service.participant.events(token, events) == len(odd)
    assert [one["text"] for one in service.participant.messages(token)] == ["x" * 500]
