"""The verbs for recruiters and for withdrawal, from the command line, over a real workspace."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.errors import ForetellError
from dashboard.cli.main import build_app
from study.participation.payloads import Recruit
from study.service import Service
from tests.conftest import write_bundle
from tests.study.participants import take_part

PIDS = ["a" * 24, "b" * 24]


@pytest.fixture
def codes(workspace: Path) -> list[str]:
    """Two people of a study with a bonus took part; their private codes."""
    with Service(workspace) as service:
        folder = write_bundle(
            workspace / "bundles" / "demo-00", name="demo", config={"pay": {"per_right": 7, "most": 700}}
        )
        service.researcher.open_study(folder, per_condition=1)
        found = []
        for pid in PIDS:
            token = service.participant.begin(
                "demo", recruit=Recruit(source="prolific", person=pid, study=pid, session=pid)
            )
            take_part(service, token)
            found.append(str(service.participant.state(token)["withdrawal_code"]))
    return found


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(build_app(), list(arguments))
    if isinstance(result.exception, ForetellError):
        raise result.exception
    return result.exit_code, result.stdout


def test_bonuses_are_written_once_and_again_by_their_number(codes: list[str], tmp_path: Path) -> None:
    first, again = tmp_path / "bonus.csv", tmp_path / "again.csv"
    assert run("bonus", "demo", "--out", str(first))[0] == 0
    lines = [line.split(",") for line in first.read_text().splitlines()]
    assert [pid for pid, _ in lines] == PIDS
    assert all(round(float(amount) * 100) % 7 == 0 for _, amount in lines)
    assert "No bonus is waiting" in run("bonus", "demo", "--out", str(again))[1]
    assert not again.exists()
    run("bonus", "demo", "--out", str(again), "--batch", "1")
    assert again.read_bytes() == first.read_bytes()


def test_reconciling_exits_with_1_where_lists_differ(codes: list[str], tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text(f"Participant id,Status\n{PIDS[0]},APPROVED\n{PIDS[1]},RETURNED\n")
    code, output = run("reconcile", "demo", str(path))
    assert code == 1
    assert f"{PIDS[1]}: RETURNED there, done here: finished here" in output
    path.write_text(f"Participant id,Status\n{PIDS[0]},APPROVED\n{PIDS[1]},AWAITING REVIEW\n")
    assert run("reconcile", "demo", str(path))[0] == 0
    with pytest.raises(ForetellError, match="Export it from the recruiter again"):
        run("reconcile", "demo", str(tmp_path / "none.csv"))


def test_withdrawing_leaves_a_database_that_verifies(codes: list[str], workspace: Path) -> None:
    database = workspace / "foretell.db"
    assert run("withdraw", codes[0]) == (0, "Erased.\n")
    code, output = run("verify", str(database))
    assert (code, "2 participants" in output) == (0, True)
    with sqlite3.connect(database) as db:
        db.execute("DROP TRIGGER response_no_update")
        db.execute("UPDATE response SET rt_ms = 1 WHERE seq = 20")
    code, output = run("verify", str(database))
    assert code == 1
    assert output.partition("\n")[2].startswith("Fault: Response 20 ")
    with pytest.raises(ForetellError, match="There is no database"):
        run("verify", str(workspace / "other.db"))
