"""Work that is shared out among processes ends with the process that asked for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

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


LISTENING = """
import psutil
from study.workspace.parallel import start_ray
with start_ray(1) as ray:
    ray.get(ray.remote(lambda: 1).remote())
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        try:
            places = [one.laddr.ip for one in process.net_connections("inet") if one.status == psutil.CONN_LISTEN]
        except psutil.NoSuchProcess:
            continue
        print(*places, sep="\\n")
"""


@pytest.mark.slow
def test_a_ray_cluster_listens_to_this_machine_alone() -> None:
    """Catches a build with Ray that opens a door to code for the whole network, as Ray does by default on Linux."""
    pytest.importorskip("ray")
    pytest.importorskip("psutil")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    done = subprocess.run(
        [sys.executable, "-c", LISTENING], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    places = {line for line in done.stdout.split() if ":" in line or line[:1].isdigit()}
    assert places
    assert {place.removeprefix("::ffff:") for place in places} <= {"127.0.0.1", "::1"}
