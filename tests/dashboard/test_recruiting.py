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
    with pytest.raises(ForetellError, match="No table at"):
        run("reconcile", "demo", str(tmp_path / "none.csv"))


@pytest.fixture
def dashed(workspace: Path) -> list[str]:
    """Participants of a study with a bonus, whose ids a spreadsheet would take for formulas."""
    ids = ["-7", "@home"]
    with Service(workspace) as service:
        config = {"pay": {"per_right": 7, "most": 700}}
        service.researcher.open_study(
            write_bundle(workspace / "bundles" / "demo-00", name="demo", config=config), per_condition=1
        )
        for person in ids:
            take_part(service, service.participant.begin("demo", recruit=Recruit(person=person)))
    return ids


def test_a_file_for_a_recruiter_has_the_ids_as_they_are(dashed: list[str], tmp_path: Path) -> None:
    """Catches '-7 in a list of payments or links: no recruiter knows a participant with an apostrophe."""
    run("bonus", "demo", "--out", str(tmp_path / "bonus.csv"))
    paid = [line.split(",")[0] for line in (tmp_path / "bonus.csv").read_text().splitlines()]
    assert sorted(paid) == dashed
    (tmp_path / "ids.txt").write_text("\n".join(dashed))
    run("links", "demo", str(tmp_path / "ids.txt"), "--out", str(tmp_path / "links.csv"))
    linked = [line.split(",")[0] for line in (tmp_path / "links.csv").read_text().splitlines()]
    assert linked == ["pid", *dashed]


HEAD = "Submission id,Participant id,Status,Started at,Completion code,Age"


def list_codes(workspace: Path, *, complete: str) -> list[str]:
    """Four participants of a study with a code of its own took part; what they are listed with follows the test."""
    with Service(workspace) as service:
        config = {"recruiter": {"url": "https://example.org/?cc={code}", "complete": complete}}
        service.researcher.open_study(
            write_bundle(workspace / "bundles" / "coded-00", name="coded", config=config), per_condition=2
        )
        people = [f"{k:024x}" for k in range(1, 5)]
        for pid in people:
            recruit = Recruit(source="prolific", person=pid, study=pid, session=pid)
            take_part(service, service.participant.begin("coded", recruit=recruit))
    return people


@pytest.mark.parametrize(("separator", "encoding"), [(",", "utf-8"), (";", "utf-8-sig"), ("\t", "utf-16")])
def test_a_recruiters_list_is_read_as_it_was_saved(
    workspace: Path, tmp_path: Path, separator: str, encoding: str
) -> None:
    """Catches a complete list refused for its separator, ids without their zeros, and NOCODE taken for a code."""
    people = list_codes(workspace, complete="DONE42")
    codes = ["DONE42", "NOCODE", "done42", "OTHER"]
    rows = [HEAD, *(f"s{k},{pid},APPROVED,,{code},30" for k, (pid, code) in enumerate(zip(people, codes, strict=True)))]
    path = tmp_path / "list.csv"
    path.write_bytes("\n".join([*rows, ",,,,,"]).replace(",", separator).encode(encoding))
    code, output = run("reconcile", "coded", str(path))
    assert code == 1
    lines = output.splitlines()
    assert lines[0].startswith(f"{people[1]}: APPROVED there, done here: handed in no code")
    assert lines[1] == f"{people[3]}: APPROVED there, done here: handed in another code than the one shown here"
    assert lines[2].endswith("2 participants differ")
    assert len(lines) == 3


def test_the_order_of_a_participants_rows_decides_nothing(workspace: Path, tmp_path: Path) -> None:
    """Catches a participant who returned and came again, reported as paid or unpaid by the last row."""
    people = list_codes(workspace, complete="DONE42")
    rows = [f"s1,{people[0]},APPROVED,2026-11-27,DONE42,30", f"s0,{people[0]},RETURNED,2026-11-26,,30"]
    rest = [f"s{k},{pid},APPROVED,,DONE42,30" for k, pid in enumerate(people[1:], start=2)]
    said = []
    for order in (rows, rows[::-1]):
        path = tmp_path / "list.csv"
        path.write_text("\n".join([HEAD, *order, *rest]))
        said.append(run("reconcile", "coded", str(path)))
    assert said[0] == said[1]
    first = said[0][1].splitlines()[0]
    assert first == (
        f"{people[0]}: APPROVED there, done here: listed 2 times (APPROVED, RETURNED), of which APPROVED counts"
    )


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
