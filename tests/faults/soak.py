"""People who answer while the server is killed again and again, and what the database must then say."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from study.service import Service
from tests.conftest import write_bundle
from tests.server import Server

BETWEEN = 25
"""Answers between two blows, at least: each falls under load."""


@dataclass(frozen=True)
class Outcome:
    """What was acknowledged, what is stored, and what is wrong."""

    acknowledged: int
    stored: int
    lost: int
    doubled: int
    conflicts: int
    retries_found_stored: int
    faults: tuple[str, ...]
    p50_ms: float
    slowest_ms: float


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
        self.gates: dict[int, threading.Event] = {}
        """Trials that are not answered before an event."""

    def call(self, method: str, path: str, body: Any = None) -> httpx.Response:
        while True:
            try:
                reply = self.http.request(method, path, json=body)
            except httpx.TransportError:
                time.sleep(0.1)  # the server is down; the page waits longer
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
            if index in self.gates:
                self.gates[index].wait()
            side = random.Random(attempt).choice(("left", "right"))
            body = {"trial_index": index, "attempt_id": attempt, "side": side, "input": "key", "rt_ms": 500.0}
            body["step"] = state["trial"].get("step", 1)
            began = time.perf_counter()
            reply = self.call("POST", "responses", body)
            self.latencies_ms.append(1000 * (time.perf_counter() - began))
            self.codes[reply.status_code] += 1
            assert reply.status_code in (200, 201), reply.text
            self.acknowledged.append((attempt, index, side))
            state = reply.json()["state"]


def prepared(home: Path, clients: int, trials: int, task: str = "predict") -> None:
    """An open study in which so many people can answer so long."""
    shown = {"trials": trials, "practice": 0, "conditions": ("none",), "side": 8}
    folder = write_bundle(home / "bundle", name="demo", config={"study": {"task": task}}, **shown)
    with Service(home) as service:
        service.researcher.open_study(folder, per_condition=clients)


def soak(server: Server, clients: int, kills: int, seed: int) -> Outcome:
    """kill -9 at random moments while people answer as fast as they can; then stop and count."""
    rng, stop = random.Random(seed), threading.Event()
    people = [Client(server.url, number, stop) for number in range(clients)]
    for person in people:
        person.start()
    for _ in range(kills):
        before = sum(len(person.acknowledged) for person in people)
        while sum(len(person.acknowledged) for person in people) < before + BETWEEN:
            _still_going(people)
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.25))
        server.kill()
        server.start()
    stop.set()
    for person in people:
        person.join(300)
    _still_going(people)
    server.stop()
    return _counted(server.home, people)


def _still_going(people: list[Client]) -> None:
    for person in people:
        if person.failure is not None:
            raise RuntimeError(f"person {person.number} gave up") from person.failure
    if not people[0].stop.is_set() and not any(person.is_alive() for person in people):
        raise RuntimeError("everybody is done before the last blow: give the study more trials")


def _counted(home: Path, people: list[Client]) -> Outcome:
    acknowledged = {row for person in people for row in person.acknowledged}
    with sqlite3.connect(home / "foretell.db") as db:
        last, earlier = (
            db.execute(f"SELECT attempt_id, trial_index, side FROM {table}").fetchall()
            for table in ("response", "earlier_response")
        )
        steps = "SELECT session_id, trial_index, 0 FROM response UNION SELECT session_id, trial_index, step FROM "
        trials = db.execute(f"SELECT count(*) FROM ({steps} earlier_response)").fetchone()
        conflicts = db.execute("SELECT count(*) FROM response_conflict").fetchone()
        events = db.execute("SELECT count(*) FROM event WHERE kind = 'answered'").fetchone()
        whole = db.execute("PRAGMA integrity_check").fetchone()
    stored = last + earlier
    with Service(home) as service:
        faults = service.researcher.verify()
    faults += [] if whole == ("ok",) else [f"The database is damaged: {whole[0]}."]
    faults += [] if events == (len(last),) else [f"{events[0]} events for {len(last)} answers."]
    # every client waited for its last acknowledgement: what is stored beyond was stored twice
    doubled = len(stored) - min(len({row[0] for row in stored}), trials[0], len(acknowledged))
    times = sorted(t for person in people for t in person.latencies_ms)
    return Outcome(
        acknowledged=len(acknowledged),
        stored=len(stored),
        lost=len(acknowledged - set(stored)),
        doubled=doubled,
        conflicts=conflicts[0],
        retries_found_stored=sum(person.codes[200] for person in people),
        faults=tuple(faults),
        p50_ms=round(times[len(times) // 2], 1),
        slowest_ms=round(times[-1], 1),
    )
