"""Work in a process of its own: its reports, its end, and that it does not outlive whoever wanted it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core.errors import ForetellError
from study.workspace.apart import NICE, NICENESS, find_niceness, run_apart
from study.workspace.workspace import ROOT

PATIENCE_S = 300


class Stop(Exception):
    """Raised out of a report."""


def is_alive(number: int) -> bool:
    status = Path(f"/proc/{number}/stat")
    return status.is_file() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def read_numbers(folder: Path) -> list[int]:
    file = folder / "started"
    deadline = time.monotonic() + PATIENCE_S
    while not file.is_file() or len(file.read_text().split()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return [int(number) for number in file.read_text().split()]


def await_end(numbers: list[int]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while any(map(is_alive, numbers)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_reports_and_result_come_from_another_process_that_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a build at the priority of the pages, and a line that a library prints taken for a report."""
    monkeypatch.delenv(NICENESS)
    reports: list[tuple[int, int, str]] = []
    niceness = int(run_apart("tests.apart:count", "3", progress=lambda *report: reports.append(report)))
    assert niceness == min(os.nice(0) + NICE, 19)
    assert [report for report in dict.fromkeys(reports) if report[1]] == [(k, 3, "counting") for k in (1, 2, 3)]


@pytest.mark.parametrize(("given", "added"), [("0", 0), ("5", 5), ("99", 19), ("", NICE), ("low", NICE), ("-3", NICE)])
def test_the_niceness_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch, given: str, added: int) -> None:
    """Catches a busy server whose builds never end, and a word there that stops each build."""
    monkeypatch.setenv(NICENESS, given)
    assert find_niceness() == added


def test_a_refusal_and_a_kill_are_one_sentence() -> None:
    """Catches a traceback, or a job that waits for ever, where the work failed or memory ran out."""
    with pytest.raises(ForetellError, match=r"^The images are gone\.$"):
        run_apart("tests.apart:refuse")
    with pytest.raises(ForetellError, match=r"ended without a result \(exit code -9\)\. If memory ran out"):
        run_apart("tests.apart:die")


def test_stopped_work_ends_with_what_it_started(tmp_path: Path) -> None:
    """Catches processes that compute on after Stop."""

    def stop(*_: object) -> None:
        if (tmp_path / "started").is_file():
            raise Stop

    with pytest.raises(Stop):
        run_apart("tests.apart:wait", str(tmp_path), progress=stop)
    await_end(read_numbers(tmp_path))


def test_a_kill_9_of_the_caller_ends_the_work(tmp_path: Path) -> None:
    """Catches a build that goes on for minutes after its server was killed, next to that of the next start."""
    code = "import sys; from study.workspace.apart import run_apart; run_apart('tests.apart:wait', sys.argv[1])"
    command = [sys.executable, "-c", code, str(tmp_path)]
    caller = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)})
    numbers = read_numbers(tmp_path)
    caller.kill()
    caller.wait()
    await_end(numbers)
