"""Identities apart from answers, withdrawal that leaves hashes only, pay, and the recruiter's list."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError

from core.errors import ForetellError
from study.bundle import Bundle
from study.participation.arrival import DAY_NS
from study.participation.pay import bonus
from study.participation.payloads import Recruit, SessionCredentials
from study.participation.refusals import Refusal
from study.plan.procedure import Pay
from study.service import Service
from study.store import find_file
from tests.study.participants import MakeBundle, answer, everything, query, take_part, tamper, to_trials

PAY = {"per_right": 5, "most": 40}
PIDS = [f"5e{n:022x}" for n in range(1, 9)]  # not of zeros alone, as the first link of the hash chain is


def prolific(n: int) -> Recruit:
    return Recruit(source="prolific", person=PIDS[n], study="a" * 24, session=f"{n:024x}")


pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def study(service: Service, bundle: MakeBundle) -> str:
    return service.researcher.open_study(bundle(config={"pay": PAY}), per_condition=2)


def code_of(service: Service, token: str) -> str:
    return str(service.participant.state(token)["withdrawal_code"])


def identities(service: Service) -> list[tuple[Any, ...]]:
    with service.workspace.identities._writing.begin() as db:
        return [tuple(row) for row in db.exec_driver_sql("SELECT ext_person, ext_session FROM identity ORDER BY 1")]


# Identities


def test_ids_are_in_their_own_file_and_nowhere_else(service: Service, study: str) -> None:
    """The bytes of everything in the workspace are searched, the write-ahead logs too."""
    take_part(service, service.participant.begin(study, recruit=prolific(0)))
    service.researcher.load_participants(study)
    assert identities(service) == [(PIDS[0], "0" * 24)]
    holding = [p.name for p in service.workspace.home.iterdir() if PIDS[0].encode() in p.read_bytes()]
    assert PIDS[0] not in everything(service)
    # PostgreSQL has a schema of its own for them.
    assert bool(holding) == (find_file(service.workspace.database) is not None)
    assert all(name.startswith("identity.db") for name in holding)


def test_the_same_person_is_never_given_a_second_place(service: Service, study: str) -> None:
    first = service.participant.begin(study, recruit=prolific(0))
    take_part(service, first)
    code = service.participant.state(first)["code"]
    again = service.participant.begin(
        study, recruit=prolific(0), proof=SessionCredentials(code=code_of(service, first))
    )
    assert service.participant.state(again)["code"] == code
    assert query(service, "SELECT count(*) FROM allocation_slot WHERE state != 'open'") == [(1,)]


def test_who_declines_leaves_no_id(service: Service, study: str) -> None:
    token = service.participant.begin(study, recruit=prolific(0))
    assert len(identities(service)) == 1
    service.participant.consent(token, False)
    assert identities(service) == []


def test_who_declined_leaves_no_id_when_she_comes_again(service: Service, study: str) -> None:
    """Catches an id that is kept again because the link was opened twice."""
    service.participant.consent(service.participant.begin(study, recruit=prolific(0)), False)
    again = service.participant.begin(study, recruit=prolific(0))
    assert service.participant.state(again)["stage"] == "declined"
    assert identities(service) == []


def test_an_id_is_kept_for_a_day_until_its_person_agrees(tmp_path: Path, bundle: MakeBundle) -> None:
    """Catches an id that is kept for the study's time of somebody who only read the consent page."""
    now = [10**18]
    with Service(tmp_path, clock=lambda: now[0]) as service:
        study = service.researcher.open_study(bundle(config={"recruiter": {"retention_days": 3}}), 2)
        service.participant.begin(study, recruit=prolific(0))
        service.participant.consent(
            service.participant.begin(study, recruit=prolific(1), proof=SessionCredentials(browser="b" * 36)), True
        )
        now[0] += DAY_NS
        service.researcher.confirm_time()
        service.participant.begin(study, recruit=prolific(1), proof=SessionCredentials(browser="b" * 36))
        assert service.workspace.erase_identities() == 1
        assert [person for person, _ in identities(service)] == [PIDS[1]]
        now[0] += 2 * DAY_NS
        service.researcher.confirm_time()
        assert service.workspace.erase_identities() == 1


def test_ids_are_erased_when_their_time_is_over(tmp_path: Path, bundle: MakeBundle) -> None:
    now = [10**18]
    with Service(tmp_path, clock=lambda: now[0]) as service:
        study = service.researcher.open_study(bundle(config={"recruiter": {"retention_days": 3}}), 2)
        service.participant.consent(service.participant.begin(study, recruit=prolific(0)), True)
        now[0] += 2 * DAY_NS
        service.researcher.confirm_time()
        assert service.workspace.erase_identities() == 0
    now[0] += DAY_NS
    with Service(tmp_path, clock=lambda: now[0]) as service:
        assert len(identities(service)) == 1  # opening erases nothing
        service.researcher.confirm_time()
        assert service.workspace.erase_identities() == 1
        assert query(service, "SELECT act FROM audit WHERE actor = 'server'") == [("erased identities",)]


@pytest.mark.parametrize(
    "ids",
    [
        {"person": "x" * 24},
        {"person": PIDS[0][:-1]},
        {"study": None},
        {"session": "b"},
        {"person": "A" * 24},
    ],
)
def test_prolifics_ids_are_24_hexadecimal_digits(ids: dict[str, Any]) -> None:
    good = {"source": "prolific", "person": PIDS[0], "study": "a" * 24, "session": "b" * 24}
    Recruit(**good)  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="24 hexadecimal"):
        Recruit(**{**good, **ids})


# Withdrawal


@pytest.mark.parametrize("responses", [1, 7, 15])
def test_withdrawing_erases_and_the_chain_still_holds(service: Service, study: str, responses: int) -> None:
    """Others answer before, between and after; during and after the study."""
    before, mine, after = (service.participant.begin(study) for _ in range(3))
    take_part(service, before)
    to_trials(service, mine)
    to_trials(service, after)
    service.participant.record(after, answer(0))
    for index in range(responses):
        service.participant.record(mine, answer(index))
    service.participant.record(mine, answer(0))  # a conflict
    if responses == 15:
        service.participant.finish(mine)
    [(who,)] = query(service, "SELECT session_id FROM response ORDER BY seq DESC LIMIT 1")
    state = service.participant.withdraw(f" {code_of(service, mine).lower()} ")
    assert state["stage"] == "withdrawn"
    for table in ("response", "response_conflict", "event", "trial_plan", "comprehension", "questionnaire"):
        assert query(service, f"SELECT count(*) FROM {table} WHERE session_id = '{who}'") == [(0,)], table
    assert query(service, "SELECT count(*) FROM erased_answer") == [(responses,)]
    [(act, detail)] = query(service, "SELECT act, detail_json FROM audit WHERE actor = 'participant'")
    assert (act, json.loads(detail)) == ("withdrew", {"session": who, "responses": responses})
    assert service.participant.record(after, answer(1)).code == 201  # the chain goes on behind the gap
    assert service.researcher.verify() == []
    assert service.participant.record(mine, answer(0)).code == 410
    assert query(service, "SELECT count(*) FROM allocation_slot WHERE state = 'held'") == [(1,)]
    assert len(service.researcher.responses(study)) == 12


def test_only_the_holder_of_the_code_can_withdraw(service: Service, study: str) -> None:
    token = service.participant.begin(study)
    assert "withdrawal_code" not in service.participant.state(token)  # nothing to withdraw before the consent
    to_trials(service, token)
    service.participant.record(token, answer(0))
    code = code_of(service, token)
    with pytest.raises(Refusal, match="No participation"):
        service.participant.withdraw(code[:-1] + ("A" if code[-1] != "A" else "B"))
    assert query(service, "SELECT count(*) FROM response") == [(1,)]
    for _ in range(2):  # a retry
        service.participant.withdraw(code)
    assert query(service, "SELECT count(*) FROM withdrawal") == [(1,)]
    files = [p for p in service.workspace.home.iterdir() if p.is_file() and p.name != "participants.key"]
    assert not any(code.encode() in path.read_bytes() for path in files)


def test_erasing_is_not_possible_without_a_withdrawal(service: Service, study: str) -> None:
    token = service.participant.begin(study)
    to_trials(service, token)
    service.participant.record(token, answer(0))
    with pytest.raises(DBAPIError, match="append-only"):
        query(service, "DELETE FROM response")
    service.participant.withdraw(code_of(service, token))
    for statement in ("DELETE FROM erased_answer", "DELETE FROM withdrawal", "UPDATE audit SET act = 'x'"):
        with pytest.raises(DBAPIError, match="append-only"):
            query(service, statement)


def test_a_forged_tombstone_is_found(service: Service, study: str) -> None:
    token = service.participant.begin(study)
    take_part(service, token)
    service.participant.withdraw(code_of(service, token))
    tamper(service, "UPDATE erased_answer SET row_hash = 'x' WHERE seq = 4")
    assert service.researcher.verify()[0].startswith("Response 5 ")


# Pay


def right_answers(service: Service) -> int:
    """Right predictions, counted by hand from the file and the manifest."""
    trials = {trial.id: trial for trial in Bundle(service.researcher.studies()[0].folder).manifest.trials}
    rows = query(service, "SELECT item_id, choice FROM response JOIN trial_plan USING (session_id, trial_index)")
    return sum(trials[item].ai_choice == choice for item, choice in rows if item in trials)


def test_the_bonus_is_the_published_formula(service: Service, study: str) -> None:
    take_part(service, service.participant.begin(study, recruit=prolific(0)))
    right = right_answers(service)
    assert query(service, "SELECT minor_units, formula FROM payment") == [(min(40, 5 * right), "min(40, 5 * right)")]
    assert [bonus(Pay(**PAY), n) for n in (0, 3, 8, 9)] == [0, 15, 40, 40]


def test_nobody_is_in_two_batches(service: Service, study: str) -> None:
    for n in (0, 1):
        take_part(service, service.participant.begin(study, recruit=prolific(n)))
    take_part(service, service.participant.begin(study))  # no id
    first = service.researcher.bonus(study)
    assert (first.number, list(first.rows["pid"]), first.without_id) == (1, PIDS[:2], 1)
    assert service.researcher.bonus(study).number is None
    withdrawn = service.participant.begin(study, recruit=prolific(2))
    take_part(service, withdrawn)
    service.participant.withdraw(code_of(service, withdrawn))
    second = service.researcher.bonus(study)
    assert (second.number, list(second.rows["pid"])) == (2, [PIDS[2]])  # withdrawing costs nothing
    pd.testing.assert_frame_equal(service.researcher.bonus(study, 1).rows, first.rows)
    with pytest.raises(ForetellError, match="no batch 3"):
        service.researcher.bonus(study, 3)


def test_the_recruiters_list_is_reconciled(service: Service, study: str) -> None:
    """Every way two lists can differ, once; the one who agrees is not named."""
    done, unfinished, returned_done, returned, coded, unlisted = range(6)
    tokens = {n: service.participant.begin(study, recruit=prolific(n)) for n in range(6)}
    for n in (done, returned_done, coded, unlisted):
        take_part(service, tokens[n])
    for n in (unfinished, returned):
        to_trials(service, tokens[n])
    statuses = ["APPROVED", "AWAITING REVIEW", "RETURNED", "TIMED-OUT", "APPROVED"]
    codes = [service.participant.state(tokens[done])["code"], "", "", "", "OTHER"]
    listed = pd.DataFrame({"Participant id": PIDS[:5], "Status": statuses, "Completion code": codes})
    listed.loc[5] = [PIDS[7], "APPROVED", ""]
    found = service.researcher.reconcile(study, listed).set_index("person")["matter"]
    assert set(found.index) == {PIDS[n] for n in (unfinished, returned_done, coded, unlisted, 7)}
    for n, words in ((unfinished, "not finished here"), (returned_done, "may be paid"), (coded, "another code"),
                     (unlisted, "not in the recruiter's list"), (7, "not known here")):  # fmt: skip
        assert words in found[PIDS[n]]
    assert query(service, "SELECT count(*) FROM allocation_slot WHERE state = 'held'") == [(1,)]
    assert service.researcher.verify() == []
    with pytest.raises(ForetellError) as refused:
        service.researcher.reconcile(study, pd.DataFrame({"User ID": [], "Credit Status": []}))
    assert str(refused.value) == (
        "The recruiter's file needs the columns 'Participant id' and 'Status' (Prolific), or 'WorkerId' and "
        "'AssignmentStatus' (MTurk), and it has: 'User ID', 'Credit Status'. Name its columns of ids and of statuses "
        "like Prolific's, with the statuses APPROVED, AWAITING REVIEW, RETURNED, TIMED-OUT, REJECTED."
    )


def test_the_results_of_a_batch_of_mturk_are_reconciled(service: Service, study: str) -> None:
    """Catches MTurk's columns refused, and a worker whose submission waits for approval taken for one without."""
    workers = {n: f"A{n}EXAMPLEWORKER" for n in range(3)}
    tokens = {n: service.participant.begin(study, recruit=Recruit(person=name)) for n, name in workers.items()}
    for n in (0, 1):
        take_part(service, tokens[n])
    listed = pd.DataFrame(
        {
            "HITId": "3HIT",
            "AssignmentId": [f"3ASSIGNMENT{n}" for n in workers],
            "WorkerId": list(workers.values()),
            "AssignmentStatus": ["Submitted", "Approved", "Submitted"],
            "Answer.surveycode": [service.participant.state(tokens[0])["code"], "OTHER", "OTHER"],
        }
    )
    found = service.researcher.reconcile(study, listed).set_index("person")["matter"]
    assert found.to_dict() == {
        workers[1]: "handed in another code than the one shown here",
        workers[2]: "handed in, but not finished here",
    }


# The whole database


@pytest.fixture
def filled(service: Service, study: str) -> Service:
    take_part(service, service.participant.begin(study))
    token = service.participant.begin(study)
    to_trials(service, token)
    service.participant.record(token, answer(0))
    assert service.researcher.verify() == []
    return service


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("UPDATE trial_plan SET item_id = 'main-9' WHERE trial_index = 5", "trial 5: the plan does not"),
        ("UPDATE trial_plan SET phase = 'catch' WHERE trial_index = 4", "trial 4: the plan does not"),
        ("DELETE FROM trial_plan WHERE trial_index = 14", "plan of 14 trials but the study has 15"),
        ("UPDATE session SET condition = CASE condition WHEN 'both' THEN 'none' ELSE 'both' END", "the plan does not"),
        ("UPDATE session SET position = 3 WHERE stage != 'done'", "is at trial 3 but has responses to 1"),
        ("UPDATE allocation_slot SET state = 'held' WHERE state = 'done'", "Place"),
        ("UPDATE audit SET detail_json = '{}' WHERE seq = 1", "Audit entry 1"),
        ("UPDATE response SET confidence = 0.5 WHERE seq = 3", "Response 3 .* was changed"),
    ],
)  # fmt: skip
def test_verify_names_the_first_wrong_row(filled: Service, statement: str, complaint: str) -> None:
    """Done to the file itself, the triggers out of the way."""
    tamper(filled, statement)
    with pytest.raises(AssertionError, match=complaint):
        raise AssertionError(filled.researcher.verify()[0])
