"""What was erased is in no file any more: every byte of the workspace is searched, also after a kill."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from study.participation.payloads import ClientEvent, QuestionnaireResponses, Recruit
from study.service import Service
from tests.study.participants import MakeBundle, answer, query

ROOT = Path(__file__).parents[3]
ITEMS = [{"id": "how", "kind": "text", "text": "How?", "required": False}]
KILLED = """
import os, signal, sys
from pathlib import Path
from study.service import Service
from study.store import engine
with Service(Path(sys.argv[1])) as service:
    engine.empty_log = lambda _: os.kill(os.getpid(), signal.SIGKILL)  # after the commit, before the log is emptied
    service.participant.withdraw(sys.argv[2])
"""


@pytest.fixture
def study(service: Service, bundle: MakeBundle) -> str:
    return service.researcher.open_study(bundle(config={"questionnaire": ITEMS}, trials=6), per_condition=4)


def take_part(service: Service, study: str, mark: str) -> str:
    """Leave `mark` in attempts, conflicts, events and what is typed; return the private code."""
    token = service.participant.begin(study)
    service.participant.consent(token, True)
    service.participant.ready(token)
    state = service.participant.ready(token, "example")
    while state["stage"] in ("practice", "main"):
        index = state["trial"]["index"]
        state = service.participant.record(token, answer(index, attempt_id=f"{mark}-first-{index:03}")).state
        service.participant.record(token, answer(index, attempt_id=f"{mark}-second-{index:03}"))
        noticed = ClientEvent(event_id=f"{mark}-event-{index:03}", kind="blur", payload={"text": mark * 9})
        service.participant.events(token, [noticed])
    service.participant.fill(token, QuestionnaireResponses(answers={"how": f"{mark} " * 200}))
    service.participant.finish(token)
    return str(service.participant.state(token)["withdrawal_code"])


def count_bytes(home: Path, mark: str) -> dict[str, int]:
    """How often each file of the workspace holds a text."""
    counts = {path.name: path.read_bytes().count(mark.encode()) for path in home.iterdir() if path.is_file()}
    return {name: count for name, count in counts.items() if count}


def test_nothing_that_was_withdrawn_is_in_any_file(service: Service, study: str) -> None:
    """The write-ahead log kept it, also after PASSIVE and RESTART checkpoints; others write before, between, after."""
    codes = {mark: take_part(service, study, mark) for mark in (f"zq{n}mark" for n in range(6))}
    for mark in list(codes)[::2]:
        assert sum(count_bytes(service.workspace.home, mark).values()) > 20
        service.participant.withdraw(codes[mark])
        assert count_bytes(service.workspace.home, mark) == {}, mark
        take_part(service, study, f"after{mark[2:]}")
    assert service.researcher.verify() == []
    assert all(count_bytes(service.workspace.home, mark) for mark in list(codes)[1::2])


def test_nor_after_a_kill_and_a_restart(service: Service, study: str) -> None:
    """Killed between the commit and the emptying of the log, which the next start makes good."""
    code = take_part(service, study, "zqmark")
    done = subprocess.run([sys.executable, "-c", KILLED, str(service.workspace.home), code], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    assert count_bytes(service.workspace.home, "zqmark") != {}
    with Service(service.workspace.home) as again:
        assert query(again, "SELECT count(*) FROM withdrawal") == [(1,)]
        assert count_bytes(service.workspace.home, "zqmark") == {}


def test_a_reader_of_an_older_state_only_puts_it_off(service: Service, study: str) -> None:
    """A backup in the meantime must neither stop a withdrawal nor keep its bytes for good."""
    code = take_part(service, study, "zqmark")

    def withdraw(_: object) -> None:
        _.exec_driver_sql("SELECT count(*) FROM response").scalar()  # type: ignore[attr-defined]
        service.participant.withdraw(code)

    service.workspace.store.read(withdraw)
    assert count_bytes(service.workspace.home, "zqmark") != {}
    assert service.workspace.store.forget_erased()
    assert count_bytes(service.workspace.home, "zqmark") == {}


def test_an_id_that_is_erased_is_gone(service: Service, study: str) -> None:
    token = service.participant.begin(study, recruit=Recruit(person="zqmark"))
    assert count_bytes(service.workspace.home, "zqmark") != {}
    service.participant.consent(token, False)
    assert count_bytes(service.workspace.home, "zqmark") == {}
