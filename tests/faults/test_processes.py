"""Three processes over one PostgreSQL, many people, one process killed: places exact, nothing lost, nothing doubled."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from study.service import Service
from study.workspace.workspace import DATABASE
from tests.conftest import write_bundle
from tests.faults.soak import Client
from tests.postgresql import Postgresql
from tests.server import Server, serving
from tests.study.participants import query

PER_CONDITION, CONDITIONS, TRIALS, PROCESSES = 9, ("none", "saliency", "examples", "both"), 12, 3
PLACES = PER_CONDITION * len(CONDITIONS)
LATE = 4
HALF = TRIALS // 2


class Balanced(httpx.BaseTransport):
    """One address in front of several servers: the next of them at each request, as a proxy would choose."""

    def __init__(self, servers: list[Server], first: int) -> None:
        self._ports = itertools.cycle(server.port for server in servers[first:] + servers[:first])
        self._inner = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.url = request.url.copy_with(port=next(self._ports))
        return self._inner.handle_request(request)


@pytest.fixture
def servers(postgresql: Postgresql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Server]]:
    monkeypatch.setenv(DATABASE, postgresql.database())
    folder = write_bundle(tmp_path / "bundle", name="demo", trials=TRIALS, practice=0, conditions=CONDITIONS, side=8)
    with Service(tmp_path) as service:
        service.researcher.open_study(folder, per_condition=PER_CONDITION)
    with ExitStack() as running:
        yield [running.enter_context(serving(tmp_path)) for _ in range(PROCESSES)]


def test_three_processes_and_a_kill_9(servers: list[Server], tmp_path: Path) -> None:
    """Every request of a person goes to another process; one of the three is killed twice under load.

    More people than places come: a place given twice, or a chain forked by two writers, fails here.
    """
    stop = threading.Event()
    clients = [Client(servers[0].url, number, stop) for number in range(PLACES + LATE)]
    for number, client in enumerate(clients):
        client.http = httpx.Client(
            base_url=client.http.base_url, timeout=20, transport=Balanced(servers, number % PROCESSES)
        )
    halfway = threading.Event()  # or the other two would be done with everybody before the third is up again
    for client in clients:
        client.gates[HALF] = halfway
        client.start()
    rng = random.Random(5)
    for blow in range(2):
        begun = blow * HALF * PLACES
        while sum(len(client.acknowledged) for client in clients) < begun + 40:
            assert any(client.is_alive() for client in clients)
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.1))
        assert sum(len(client.acknowledged) for client in clients) < begun + HALF * PLACES  # under load
        servers[1].kill()
        servers[1].start()
        halfway.set()
    for client in clients:
        client.join(300)
    turned_away = [c for c in clients if c.failure is not None or not c.acknowledged]
    assert [c.failure for c in clients if c.acknowledged] == [None] * PLACES
    assert len(turned_away) == LATE
    for server in servers:
        server.stop()

    acknowledged = Counter(row for client in clients for row in client.acknowledged)
    with Service(tmp_path) as service:
        stored = Counter(query(service, "SELECT attempt_id, trial_index, side FROM response"))
        assert stored == acknowledged
        assert len(stored) == PLACES * TRIALS
        given = query(service, "SELECT condition, count(*), count(DISTINCT session_id) FROM allocation_slot GROUP BY 1")
        assert sorted(given) == sorted((condition, PER_CONDITION, PER_CONDITION) for condition in CONDITIONS)
        taken = query(service, "SELECT condition, count(*) FROM session WHERE position > 0 GROUP BY 1")
        assert sorted(taken) == sorted((condition, PER_CONDITION) for condition in CONDITIONS)
        assert query(service, "SELECT min(seq), max(seq), count(*) FROM response") == [(1, len(stored), len(stored))]
        assert query(service, "SELECT count(*) FROM response_conflict") == [(0,)]
        assert service.researcher.verify() == []
