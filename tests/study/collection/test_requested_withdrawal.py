"""A withdrawal in a participant's name: against the participant's own, and what nobody may erase."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import ForetellError
from study.collection.export import export
from study.participation.payloads import Recruit
from study.participation.refusals import Refusal
from study.service import Service
from study.store import audit
from tests.study.participants import MakeBundle, answer, everything, query, take_part, to_trials

MANAGER = "manager@example.org"
ASKED = "E-mail of 3 May"
TABLES = ("response", "response_conflict", "event", "comprehension", "questionnaire", "trial_plan", "consent",
          "payment", "erased_answer", "withdrawal", "exclusion")  # fmt: skip
HELD = {"response": 3, "response_conflict": 1, "event": 3, "trial_plan": 3, "consent": 1, "payment": 1}
LEFT = {"consent": 1, "payment": 1, "erased_answer": 3, "withdrawal": 1}


@pytest.fixture
def study(service: Service, bundle: MakeBundle) -> str:
    folder = bundle(trials=2, practice=1, config={"pay": {"per_right": 5, "most": 40}})
    study = service.researcher.open_study(folder, per_condition=2)
    for role in ("owner", "editor", "viewer", "manager"):
        service.researcher.set_member(study, f"{role}@example.org", role)
    return study


def finish(service: Service, study: str, person: str) -> tuple[str, str, str]:
    """Take part to the end and respond to one trial twice; return name, private code and session."""
    token = service.participant.begin(study, recruit=Recruit(source="link", person=person))
    take_part(service, token)
    service.participant.record(token, answer(0))
    name = service.researcher.monitor(study).participants.iloc[0]["participant"]
    [(session,)] = query(service, "SELECT session_id FROM session ORDER BY started_at DESC LIMIT 1")
    return str(name), str(service.participant.state(token)["withdrawal_code"]), str(session)


def count_rows(service: Service, session: str) -> dict[str, int]:
    counts = {t: query(service, f"SELECT count(*) FROM {t} WHERE session_id = '{session}'")[0][0] for t in TABLES}
    return {table: int(count) for table, count in counts.items() if count}


@pytest.mark.usefixtures("database")
def test_it_erases_what_the_participants_own_withdrawal_erases(service: Service, study: str) -> None:
    """Catches rows that stay, a place that stays taken, and an identity in the audit trail; by all three names."""
    people = {person: finish(service, study, person) for person in ("own-4711", "name-4711", "code-4711", "id-4711")}
    stays = finish(service, study, "stays-4711")
    sessions = {person: session for person, (_, _, session) in people.items()}
    assert [count_rows(service, session) for session in sessions.values()] == [HELD] * 4
    service.participant.withdraw(people["own-4711"][1])
    manager = service.act_as(MANAGER)
    named = {
        "name-4711": people["name-4711"][0],
        "code-4711": f" {people['code-4711'][1].lower()} ",
        "id-4711": "id-4711",
    }
    for person, called in named.items():
        done = manager.withdraw_participant(study, called, f" {ASKED} ")
        assert (done.participant, done.responses) == (people[person][0], 3)
    assert {person: count_rows(service, session) for person, session in sessions.items()} == dict.fromkeys(people, LEFT)
    assert count_rows(service, stays[2]) == HELD
    assert service.researcher.verify() == []
    assert set(service.researcher.responses(study)["participant"]) == {stays[0]}
    people_table = service.researcher.load_participants(study).set_index("participant")
    assert people_table["stage"].to_dict() == {**{n: "withdrawn" for n, _, _ in people.values()}, stays[0]: "done"}
    own, *theirs = [row for row in service.workspace.store.read(audit.acts) if row["act"].startswith("withdrew")]
    assert (own["actor"], own["act"]) == ("participant", "withdrew")
    assert [(row["actor"], row["act"], json.loads(row["detail_json"])) for row in theirs] == [
        (MANAGER, "withdrew a participant",
         {"study": study, "session": sessions[person], "responses": 3, "reason": ASKED})
        for person in named
    ]  # fmt: skip
    written = everything(service)
    assert not any(code in written or person in written for person, (_, code, _) in people.items())
    assert query(service, "SELECT count(*) FROM allocation_slot WHERE state != 'open'") == [(1,)]


def test_the_export_has_no_response_of_who_was_withdrawn(service: Service, study: str, tmp_path: Path) -> None:
    """Catches a frame that is cached from before the withdrawal."""
    gone, stays = finish(service, study, "a"), finish(service, study, "b")
    assert len(service.researcher.responses(study)) == 4
    service.researcher.withdraw_participant(study, gone[0], ASKED)
    export(service.researcher, study, tmp_path / "out.csv")
    exported = (tmp_path / "out.csv").read_text()
    assert stays[0] in exported
    assert gone[0] not in exported


def test_nobody_else_and_nothing_else_is_erased(service: Service, study: str, bundle: MakeBundle) -> None:
    """Catches roles that may not, another study's participant, and participants of whom nothing is stored."""
    mine = finish(service, study, "mine")
    other = service.researcher.open_study(bundle(name="other"), per_condition=1)
    theirs = finish(service, other, "theirs")
    before = query(service, "SELECT count(*) FROM response")
    for address in ("editor@example.org", "viewer@example.org", "stranger@example.org"):
        with pytest.raises(Refusal) as refused:
            service.act_as(address).withdraw_participant(study, mine[0], ASKED)
        assert refused.value.code == 403
    manager = service.act_as(MANAGER)
    with pytest.raises(Refusal, match="no role in a study 'other'"):
        manager.withdraw_participant(other, theirs[0], ASKED)
    for called in (*theirs[:2], "theirs", theirs[2], "", " ", "P", "x" * 10_000, "' OR 1=1 --"):
        with pytest.raises(ForetellError, match="No participant of 'demo' has this name") as unknown:
            manager.withdraw_participant(study, called, ASKED)
        assert len(str(unknown.value)) < 200
    for text, said in ((" ", "Say how and when"), ("x" * 10_000, r"10,000 characters\. Shorten it to 300")):
        with pytest.raises(ForetellError, match=said):
            manager.withdraw_participant(study, mine[0], text)
    assert query(service, "SELECT count(*) FROM response") == before
    assert query(service, "SELECT count(*) FROM withdrawal") == [(0,)]
    assert [row for row in service.workspace.store.read(audit.acts) if "withdrew" in row["act"]] == []


def test_who_has_left_nothing_cannot_be_withdrawn(service: Service, study: str) -> None:
    """Catches a second withdrawal, one before the consent, and a session that is no real participant's."""

    def only(stage: str) -> str:
        rows = service.researcher.load_participants(study)
        return str(rows[rows["stage"] == stage]["participant"].item())

    service.participant.begin(study)
    with pytest.raises(ForetellError, match="has not agreed to take part"):
        service.researcher.withdraw_participant(study, only("consent"), ASKED)
    service.participant.consent(service.participant.begin(study), False)
    with pytest.raises(ForetellError, match="has not agreed to take part"):
        service.researcher.withdraw_participant(study, only("declined"), ASKED)
    token = service.participant.begin(study)
    to_trials(service, token)
    name = only("practice")
    assert service.researcher.withdraw_participant(study, name, ASKED).responses == 0
    with pytest.raises(ForetellError, match=f"{name} has withdrawn before"):
        service.researcher.withdraw_participant(study, name, ASKED)
    seen: dict[str, Any] = service.participant.record(token, answer(0)).state  # the page follows the server
    assert (seen["stage"], "withdrawal_code" in seen) == ("withdrawn", False)
    preview = service.participant.begin(study, mode="preview")
    service.participant.consent(preview, True)
    with pytest.raises(ForetellError, match="No participant"):
        service.researcher.withdraw_participant(study, service.participant.state(preview)["withdrawal_code"], ASKED)
