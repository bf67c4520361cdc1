"""What a participant is told of what is held about them, against what a withdrawal erases and what the tables hold."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from core.errors import ForetellError
from dashboard.cli import main as cli
from study.participation.payloads import CheckResponses, ClientEvent, QuestionnaireResponses, Recruit
from study.participation.refusals import Refusal
from study.participation.responding import session_of_token
from study.participation.sittings.course import HOUR_NS
from study.service import Service
from study.store import audit, coding, subject
from study.store.coding import TextKey
from study.store.tables import METADATA
from study.workspace.workspace import VARIABLE
from tests.study.participants import MakeBundle, answer, query

PERSON, OTHER = "held-4711", "other-0815"
ASKED = "E-mail of 3 May"
CONFIG: dict[str, Any] = {
    "study": {"task": "reliance"},
    "sittings": {"count": 2},
    "pay": {"per_right": 5, "most": 40},
    "questionnaire": [{"id": "how", "kind": "text", "text": "How?", "required": False}],
    "check": {"questions": [{"text": "Which?", "options": ["this", "that"], "answer": "this"}]},
}
LINKED = {"screen": "trial_plan", "invitation": "session", "audit": "session"}
"""Tables without a session's id that are about a participant, and the table that leads to them."""
OF_NOBODY = {"study_version", "study_member", "time_mark", "key_check"}


@pytest.fixture
def study(service: Service, bundle: MakeBundle) -> str:
    study = service.researcher.open_study(bundle(trials=6, practice=1, config=CONFIG), per_condition=2)
    for role in ("owner", "editor", "viewer", "manager"):
        service.researcher.set_member(study, f"{role}@example.org", role)
    service.researcher.set_access(study, "list", [PERSON, OTHER])
    return study


def take_part(service: Service, study: str, person: str) -> str:
    """Leave something in every table; return the private code."""
    participant = service.participant
    token = participant.begin(study, recruit=Recruit(person=person))
    participant.consent(token, True)
    participant.ready(token)
    state = participant.check(token, CheckResponses(attempt=1, answers=[0]))
    if state["stage"] == "example":
        state = participant.ready(token, "example")
    while state["stage"] in ("practice", "main", "between"):
        if state["stage"] == "between":
            query(service, f"UPDATE sitting SET ended_at = ended_at - {25 * HOUR_NS} WHERE ended_at IS NOT NULL")
            state = participant.start_sitting(token, 2)
        index, step = state["trial"]["index"], state["trial"]["step"]
        state = participant.record(token, answer(index, attempt_id=f"{person}-first-{index:02}{step}", step=step)).state
        participant.record(token, answer(index, attempt_id=f"{person}-second-{index:02}{step}", step=step))
        participant.events(token, [ClientEvent(event_id=f"{person}-event-{index:03}", kind="blur", payload={})])
    participant.fill(token, QuestionnaireResponses(answers={"how": f"I am {person}"}))
    participant.finish(token)
    name = service.researcher.monitor(study).participants.iloc[0]["participant"]
    service.researcher.exclude(study, str(name), "a script")
    session = str(service.workspace.store.read(lambda db: session_of_token(db, token))["session_id"])
    key = TextKey(session, 1)
    service.workspace.store.write(lambda db: coding.add(db, key, "rater@example.org", "matches", 1))
    return str(participant.state(token)["withdrawal_code"])


def count_held(held: dict[str, Any]) -> dict[str, int]:
    return {name: len(rows) for name, rows in held["tables"].items() if rows}


def read_rows(service: Service, table: str, session: str) -> list[dict[str, Any]]:
    """Read a table's rows of a participant by SQL of its own."""
    with sqlite3.connect(service.workspace.home / "foretell.db") as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute(f"SELECT * FROM {table} WHERE session_id = ?", (session,))]


def test_every_table_about_participants_is_in_the_one_list() -> None:
    """Catches a table that is added later and that neither a withdrawal nor an answer knows."""
    by_session = {name for name, table in METADATA.tables.items() if "session_id" in table.c}
    listed = {table.name for table in (*subject.ERASED, *subject.KEPT)}
    assert listed == by_session
    assert set(METADATA.tables) == listed | set(LINKED) | OF_NOBODY
    assert not set(subject.ERASED) & set(subject.KEPT)


def test_a_participant_gets_what_a_withdrawal_erases_and_what_it_leaves(service: Service, study: str) -> None:
    """Catches rows that an answer leaves out, or that are another participant's; compared with the tables by SQL."""
    code = take_part(service, study, PERSON)
    take_part(service, study, OTHER)
    held = service.act_as("manager@example.org").collect_subject_data(study, code, ASKED)
    session = held["tables"]["session"][0]["session_id"]
    for table in (*subject.ERASED, *subject.KEPT):
        rows = read_rows(service, table.name, session)
        shown = held["tables"][table.name]
        keys = [key for key in (rows[0] if rows else ()) if not key.endswith("_json")]
        assert sorted(json.dumps([row[k] for k in keys]) for row in shown) == sorted(
            json.dumps([row[k] for k in keys]) for row in rows
        ), table.name
    before = count_held(held)
    assert {table.name for table in subject.ERASED} <= before.keys()
    assert held["tables"]["identity"][0]["ext_person"] == PERSON
    assert held["tables"]["questionnaire"][0]["answer_json"] == f"I am {PERSON}"
    assert held["tables"]["screen"]
    assert held["tables"]["invitation"]
    assert {row["act"] for row in held["tables"]["audit"]} == {
        "excluded a participant",
        "gave a participant their data",
    }
    assert OTHER not in json.dumps(held)

    service.participant.withdraw(code)
    left = count_held(service.researcher.collect_subject_data(study, PERSON, ASKED))
    assert not {table.name for table in subject.ERASED} & left.keys()
    assert left["erased_answer"] == before["response"] + before["earlier_response"]
    kept = [table.name for table in subject.KEPT if table.name in before]
    assert {name: left.get(name) for name in kept} == {name: before[name] for name in kept}
    assert service.researcher.verify() == []


def test_by_any_name_for_who_manages_participants_and_at_a_logged_request(service: Service, study: str) -> None:
    """Catches an answer to an editor or a stranger, or one that leaves no trace."""
    code = take_part(service, study, PERSON)
    name = service.researcher.collect_subject_data(study, code, ASKED)["participant"]
    for named in (name, f" {code.lower()} ", PERSON):
        for person in ("owner@example.org", "manager@example.org"):
            assert service.act_as(person).collect_subject_data(study, named, ASKED)["participant"] == name
    for person in ("editor@example.org", "viewer@example.org", "stranger@example.org"):
        with pytest.raises(Refusal, match=r"you may not manage its participants|You have no role"):
            service.act_as(person).collect_subject_data(study, code, ASKED)
    with pytest.raises(ForetellError, match="Say how and when the participant asked"):
        service.researcher.collect_subject_data(study, code, " ")
    with pytest.raises(ForetellError, match="has this name, private code or id"):
        service.researcher.collect_subject_data(study, OTHER, ASKED)
    rows = service.workspace.store.read(lambda db: audit.acts(db, "gave a participant their data"))
    assert len(rows) == 7
    assert json.loads(rows[-1]["detail_json"])["reason"] == ASKED


def test_the_command_writes_a_file_for_nobody_else(
    service: Service, study: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a file that other users of the machine can read."""
    code = take_part(service, study, PERSON)
    service.close()
    monkeypatch.setenv(VARIABLE, str(service.workspace.home))
    out = tmp_path / "theirs.json"
    command = ["subject-access", study, code, "--request", ASKED, "--out", str(out)]
    result = CliRunner().invoke(cli.build_app(), command)
    assert result.exit_code == 0, result.output
    assert json.loads(out.read_text())["tables"]["identity"][0]["ext_person"] == PERSON
    assert os.name != "posix" or out.stat().st_mode & 0o077 == 0
