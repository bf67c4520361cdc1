"""Work beside the pages: once for all, in a sensible order, ended when asked, remembered within limits."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from core.errors import ForetellError
from core.types import Progress
from dashboard.shared import jobs
from dashboard.shared.jobs import Job, Pool
from tests.conftest import ROOT

PATIENCE_S = 300


class Gate:
    """Work that reports until it is let through."""

    def __init__(self, value: str = "made") -> None:
        self.open, self.began, self.value, self.runs = threading.Event(), threading.Event(), value, 0

    def __call__(self, progress: Progress) -> str:
        self.runs += 1
        self.began.set()
        while not self.open.wait(0.005):
            progress(1, 4, "parts")
        return self.value


def until(condition) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_the_same_work_is_done_once_for_everybody() -> None:
    pool, gate = Pool(1), Gate()
    first = pool.ask("a", gate)
    assert pool.ask("a", gate) is first
    gate.open.set()
    assert first.wait(PATIENCE_S)
    assert (pool.ask("a", gate).result, first.state, first.share, gate.runs) == ("made", "done", 1.0, 1)


def test_progress_and_time_left_can_be_seen_from_outside() -> None:
    pool, gate = Pool(1), Gate()
    job = pool.ask("a", gate)
    until(lambda: job.share == 0.25)
    left = job.remaining_s
    assert job.progress == (1, 4, "parts")
    assert left is not None
    assert left > 0
    gate.open.set()
    assert job.wait(PATIENCE_S)
    assert job.remaining_s is None


@pytest.mark.parametrize("running", [True, False])
def test_what_is_cancelled_ends_and_can_be_asked_for_again(running: bool) -> None:
    pool, busy, gate = Pool(1), Gate(), Gate()
    if not running:
        pool.ask("busy", busy)
        assert busy.began.wait(PATIENCE_S)
    job = pool.ask("a", gate)
    if running:
        assert gate.began.wait(PATIENCE_S)
    pool.cancel("a")
    assert job.wait(PATIENCE_S)
    assert (job.state, gate.runs) == ("cancelled", int(running))
    busy.open.set()
    gate.open.set()
    again = pool.ask("a", gate)
    assert again is not job
    assert again.wait(PATIENCE_S)
    assert again.result == "made"


def test_what_is_looked_at_goes_before_what_was_left_and_short_before_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "WANTED_S", 0.05)
    pool, busy = Pool(1), Gate()
    pool.ask("busy", busy)
    assert busy.began.wait(PATIENCE_S)
    order: list[str] = []

    def noting(name: str):
        return lambda progress: order.append(name)

    left = pool.ask("left", noting("left"), 1)
    until(lambda: time.monotonic() - left.wanted > 0.1)
    waiting = [pool.ask(name, noting(name), seconds) for name, seconds in (("long", 9), ("short", 2))]
    busy.open.set()
    assert all(job.wait(PATIENCE_S) for job in [left, *waiting])
    assert order == ["short", "long", "left"]


@pytest.mark.parametrize(
    ("error", "sentence"),
    [(ForetellError("Give more."), "Give more."), (ZeroDivisionError("0"), "Unexpected ZeroDivi")],
)
def test_an_error_is_kept_as_a_sentence_until_it_is_forgotten(error: Exception, sentence: str) -> None:
    pool = Pool(1)

    def broken(progress: Progress) -> None:
        raise error

    job = pool.ask("a", broken)
    assert job.wait(PATIENCE_S)
    assert job.state == "failed"
    assert job.error.startswith(sentence)
    assert pool.ask("a", broken) is job
    pool.forget("a")
    assert pool.find("a") is None
    assert pool.ask("a", lambda progress: 1).wait(PATIENCE_S)  # the thread lives on


def test_two_workers_let_a_short_one_pass_a_long_one() -> None:
    pool, gate = Pool(2), Gate()
    pool.ask("long", gate)
    assert pool.ask("short", lambda progress: 1).wait(PATIENCE_S)
    gate.open.set()


def test_memory_is_bounded_and_the_newest_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MOST_KEPT", 3)
    pool = Pool(1)
    for number in range(8):
        assert pool.ask(str(number), lambda progress: 1).wait(PATIENCE_S)
        until(lambda number=number: pool.find(str(number)).state == "done")
    assert [number for number in range(8) if pool.find(str(number))] == [5, 6, 7]


def test_too_much_waiting_is_refused_and_what_was_left_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MOST_WAITING", 2)
    pool, busy = Pool(1), Gate()
    pool.ask("busy", busy)
    assert busy.began.wait(PATIENCE_S)
    waiting: list[Job] = [pool.ask(str(number), lambda progress: 1) for number in range(2)]
    with pytest.raises(ForetellError, match="2 jobs are waiting already"):
        pool.ask("more", lambda progress: 1)
    monkeypatch.setattr(jobs, "WANTED_S", 0.0)
    assert pool.ask("more", lambda progress: 1).state == "waiting"
    assert [pool.find(job.key) is job for job in waiting] == [False, True]
    busy.open.set()


def test_the_process_ends_in_order_while_a_map_is_made() -> None:
    """A daemon thread inside torch at the end of Python aborts the process: exit code 134."""
    code = """
import time, torch
from dashboard.shared.jobs import pool
from core.attribution import METHODS
from study.network.sources import open_classifier
from pathlib import Path
classifier = open_classifier("scenes", Path.cwd())
shown = classifier.fill("mean")[None]
job = pool().ask("a", lambda progress: METHODS["rise"](classifier, shown, [0], samples=100_000, progress=progress))
while not job.share:
    time.sleep(0.01)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
