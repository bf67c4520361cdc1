"""Work that is shared out among processes ends with the process that asked for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from study.workspace.workspace import ROOT

PARENT = """
import sys
from functools import partial
from study.workspace import parallel
from tests.study.test_parallel import sleep_and_say
if __name__ == "__main__":
    parallel.each(partial(sleep_and_say, sys.argv[1]), list(range(8)), workers=2)
"""


def sleep_and_say(folder: str, item: int) -> None:
    """Leave one's process id, and take longer than the test."""
    (Path(folder) / str(item)).write_text(str(os.getpid()))
    time.sleep(600)


def is_running(process: int) -> bool:
    state = Path(f"/proc/{process}/stat")
    return state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    """Catches workers that go on, or wait for ever, with a network in memory after ``kill -9`` of a command."""
    (tmp_path / "work").mkdir()
    (tmp_path / "parent.py").write_text(PARENT)
    parent = subprocess.Popen(
        [sys.executable, str(tmp_path / "parent.py"), str(tmp_path / "work")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    deadline = time.monotonic() + 60
    while len(workers := [path.read_text() for path in (tmp_path / "work").iterdir()]) < 2 or not all(workers):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    while any(is_running(int(worker)) for worker in workers):
        assert time.monotonic() < deadline
        time.sleep(0.1)
