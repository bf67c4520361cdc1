"""The demo study: when it is ready, how far it is, and that one process prepares it at a time."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from study import demo
from study.service import Service
from study.workspace.workspace import ROOT
from tests.conftest import write_bundle

PATIENCE_S = 300


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """A workspace with an open study called demo, and the mark of the present version."""
    with Service(tmp_path) as service:
        service.researcher.open_study(write_bundle(tmp_path / "bundles" / "demo-1", name="demo"), per_condition=1)
    (tmp_path / demo.DONE).write_text(demo._mark(tmp_path))
    return tmp_path


def is_ready(home: Path) -> bool:
    with Service(home) as service:
        return demo.is_ready(service, home)


def test_the_demo_is_ready_only_where_all_of_it_is_there(prepared: Path) -> None:
    """Catches a demo that is never opened again after foretell.db was deleted, and one of another version."""
    assert is_ready(prepared)
    mark = (prepared / demo.DONE).read_text()
    (prepared / demo.DONE).write_text(mark[::-1])
    assert not is_ready(prepared)
    (prepared / demo.DONE).write_text(mark)
    for file in prepared.glob("foretell.*"):
        file.unlink()
    assert not is_ready(prepared)


def test_progress_is_of_the_whole_and_never_goes_back() -> None:
    """Catches a bar that starts again with each stage, whose remaining time is that of the stage alone."""
    reports: list[tuple[int, int, str]] = []
    report = demo._in_percent(lambda *given: reports.append(given))
    stages = {
        "predicting scenes/pool, 512 images each": 2,
        "predicting scenes/standard, 512 images each": 4,
        "predicting scenes/adversarial, 512 images each": 1,
        "choosing trials and examples": 10,
        "explaining trials": 33,
        "simulated participants in demo": 80,
    }
    for what, total in stages.items():
        for done in range(total + 1):
            report(done, total, what)
    shares = [done for done, _, _ in reports]
    assert shares == sorted(shares)
    assert {total for _, total, _ in reports} == {100}
    assert shares[-1] == 100
    assert max(later - earlier for earlier, later in itertools.pairwise(shares)) <= 5
    assert reports[-1][2] == "simulated participants in demo, 80 of 80"


HOLD = """
import sys, time
from pathlib import Path
from study import demo
with demo._turn(Path(sys.argv[1]), print):
    print("has it", flush=True)
    time.sleep(600)
"""


def test_a_second_start_waits_and_takes_over_after_a_kill_9(prepared: Path) -> None:
    """Catches two simulations at once in one workspace, and a lock that a killed process keeps for ever."""
    waiting = threading.Event()

    def report(_done: int, _total: int, what: str) -> None:
        assert what.startswith("waiting for another Foretell")
        waiting.set()

    command = [sys.executable, "-c", HOLD, str(prepared)]
    first = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    assert first.stdout.readline() == "has it\n"
    second = threading.Thread(target=demo.prepare, args=(str(prepared),), kwargs={"progress": report})
    second.start()
    assert waiting.wait(PATIENCE_S)
    assert second.is_alive()
    first.kill()
    first.communicate()
    second.join(PATIENCE_S)
    assert not second.is_alive()
