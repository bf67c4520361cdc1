"""What the benchmarks of many people and of kills count: a loss that happened is seen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.limits import Busy
from benchmarks.participants import Load, Log, check_database, serve_study, watch
from dashboard.cli.bench import list_benchmarks
from study.service import Service
from study.simulate import simulate

MakeBundle = Callable[..., Path]


def test_lost_answers_and_places_are_counted(tmp_path: Path, bundle: MakeBundle) -> None:
    """Negative control: an acknowledgement that the database knows nothing of is one answer lost."""
    home = tmp_path / "home"
    with Service(home) as service:
        study = service.researcher.open_study(bundle(trials=3, practice=0), per_condition=1)
        simulate(service, study, 2, {"guesser": 1.0}, seed=1)
        token = service.participant.begin(study)
        service.participant.consent(token, True)
        service.participant.ready(token)
    log = Log(acknowledged=["never-stored"])
    found = check_database(home, log)
    assert (found["responses_stored"], found["lost"], found["doubled"], found["faults"]) == (6, 1, 0, 0)
    assert sum(count for place, count in found["places"].items() if place.endswith("held")) == 1
    assert sum(found["places"].values()) == 4


@pytest.mark.browser
def test_the_monitor_that_a_run_keeps_open_is_found(tmp_path: Path) -> None:
    """Catches a heading of the page Monitor that was reworded: the benchmark would wait for the former words."""

    async def open_and_close() -> None:
        async with watch(server):
            pass

    load = Load(4, trials=2, ramp_s=0, think_s=(0, 0), longest_s=60)
    # On a thread of its own: the browser tests of this process may have left a loop running in this one.
    with serve_study(tmp_path, load) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, open_and_close()).result()


def test_they_can_be_asked_for_by_name() -> None:
    assert {"participants", "timing", "faults"} <= set(list_benchmarks())


@pytest.mark.parametrize(
    ("busy", "p99", "said"),
    [
        (Busy(0.4, 0.4, 0.2, 0.1, 4), 90, "nothing yet: the server used 0.40 cores"),
        (Busy(0.97, 0.5, 0.5, 0.3, 4), 900, "the server's processor: 0.97 cores (event loop 0.50, writer 0.30 of it)"),
        (Busy(0.8, 0.95, 0.5, 0.3, 4), 900, "the clients:"),
        (Busy(0.84, 0.84, 0.5, 0.3, 1), 900, "the machine: server and clients used 1.68 of 1 cores"),
        (Busy(0.3, 0.2, 0.1, 0.1, 4), 900, "waiting, not computing"),
    ],
)
def test_what_limited_a_run_is_told_from_who_was_busy(busy: Busy, p99: float, said: str) -> None:
    """Catches a server blamed for what its clients could not send, and a full core called nothing."""
    assert busy.limit(p99).startswith(said)
