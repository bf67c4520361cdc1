"""kill -9 of the server while people answer: nothing acknowledged is lost, nothing is doubled."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from study.service import Service
from tests.conftest import write_bundle
from tests.server import Server, serving

CLIENTS, KILLS, TRIALS = 8, 4, 400


class Client(threading.Thread):
    """Answers as fast as the server acknowledges; repeats an answer until it is, as the page does."""

    def __init__(self, url: str, number: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.number, self.stop = number, stop
        self.http = httpx.Client(base_url=f"{url}/api/v1", timeout=10)
        self.acknowledged: list[tuple[str, int, str]] = []
        self.codes: Counter[int] = Counter()
        self.latencies_ms: list[float] = []
        self.failure: BaseException | None = None

    def call(self, method: str, path: str, body: Any = None) -> httpx.Response:
        while True:
            try:
                reply = self.http.request(method, path, json=body)
            except httpx.TransportError:
                time.sleep(0.02)  # the server is down; the page waits longer
                continue
            if reply.status_code != 503:
                return reply

    def run(self) -> None:
        try:
            self.take_part()
        except BaseException as error:
            self.failure = error

    def take_part(self) -> None:
        token = self.call("POST", "begin", {"study": "demo", "recruit": {"person": f"p{self.number}"}}).json()["token"]
        self.http.headers["X-Session-Token"] = token
        self.call("POST", "consent", {"agreed": True})
        self.call("POST", "ready", {"stage": "instructions"})
        state = self.call("POST", "ready", {"stage": "example"}).json()
        while state["stage"] == "main" and not self.stop.is_set():
            index, attempt = state["trial"]["index"], str(uuid.uuid4())
            side = random.Random(attempt).choice(("left", "right"))
            body = {"trial_index": index, "attempt_id": attempt, "side": side, "input": "key", "rt_ms": 500.0}
            began = time.perf_counter()
            reply = self.call("POST", "responses", body)
            self.latencies_ms.append(1000 * (time.perf_counter() - began))
            self.codes[reply.status_code] += 1
            assert reply.status_code in (200, 201), reply.text
            self.acknowledged.append((attempt, index, side))
            state = reply.json()["state"]


@pytest.fixture
def server(tmp_path: Path) -> Any:
    folder = write_bundle(tmp_path / "bundle", name="demo", trials=TRIALS, practice=0, conditions=("none",), side=8)
    with Service(tmp_path) as service:
        service.open_study(folder, per_condition=CLIENTS)
    with serving(tmp_path) as running:
        yield running


def test_kill_9_loses_no_acknowledged_answer_and_doubles_none(server: Server, tmp_path: Path) -> None:
    """A server that answered before the commit, or a retry stored twice, fails here."""
    rng = random.Random(20)
    stop = threading.Event()
    clients = [Client(server.url, number, stop) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    for _ in range(KILLS):
        before = sum(len(client.acknowledged) for client in clients)
        while sum(len(client.acknowledged) for client in clients) < before + 25:
            time.sleep(0.005)  # the blow falls under load
        time.sleep(rng.uniform(0, 0.25))
        server.kill()
        server.start()
    stop.set()
    for client in clients:
        client.join(30)
    assert [client.failure for client in clients] == [None] * CLIENTS
    acknowledged = {row for client in clients for row in client.acknowledged}
    assert len(acknowledged) > 25 * KILLS
    server.stop()

    with sqlite3.connect(tmp_path / "foretell.db") as db:
        stored = db.execute("SELECT attempt_id, trial_index, side FROM response").fetchall()
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        gaps = db.execute(
            "SELECT position - (SELECT count(*) FROM response r WHERE r.session_id = s.session_id) FROM session s"
        ).fetchall()
        assert db.execute("SELECT count(*) FROM response_conflict").fetchone() == (0,)
        assert db.execute("SELECT count(*) FROM event WHERE kind = 'answered'").fetchone() == (len(stored),)
    assert acknowledged <= set(stored)
    assert len(stored) == len({attempt for attempt, _, _ in stored})
    assert len(stored) == len(acknowledged)  # every client waited for its last acknowledgement
    assert gaps == [(0,)] * CLIENTS  # response and position are one transaction
    with Service(tmp_path) as service:
        assert service.verify_chain() == []
    times = sorted(t for client in clients for t in client.latencies_ms)
    retries = sum(client.codes[200] for client in clients)
    print(f"{len(stored)} answers, {KILLS} kills, {retries} retries found stored, p50 {times[len(times) // 2]:.0f} ms")  # noqa: T201
