"""The database in trouble under a real server: locked by another process, disk full. Nothing acknowledged is lost."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from study.answer import Answer
from study.service import Service
from study.store import StoreError
from tests.conftest import write_bundle
from tests.server import Server, serving

LOCK = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
time.sleep(1.5)
db.execute("COMMIT")
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Service(tmp_path) as service:
        folder = write_bundle(tmp_path / "bundle", name="demo", trials=40, practice=0, side=8)
        service.open_study(folder, per_condition=2)
    with serving(tmp_path) as running:
        yield running


def taking_part(http: httpx.Client) -> None:
    http.headers["X-Session-Token"] = http.post("begin", json={"study": "demo"}).json()["token"]
    http.post("consent", json={"agreed": True})
    for stage in ("instructions", "example"):
        assert http.post("ready", json={"stage": stage}).status_code == 200


def body(index: int) -> dict[str, Any]:
    return {"trial_index": index, "attempt_id": str(uuid.uuid4()), "side": "left", "input": "key", "rt_ms": 500.0}


def test_another_process_that_locks_the_database_delays_but_loses_nothing(server: Server) -> None:
    with httpx.Client(base_url=f"{server.url}/api/v1", timeout=40) as http:
        taking_part(http)
        holder = subprocess.Popen(
            [sys.executable, "-c", LOCK, str(server.home / "foretell.db")], stdout=subprocess.PIPE, text=True
        )
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        codes = [http.post("responses", json=body(index)).status_code for index in range(3)]
        assert holder.wait(20) == 0
    assert codes == [201] * 3
    with sqlite3.connect(server.home / "foretell.db") as db:
        assert db.execute("SELECT count(*) FROM response").fetchone() == (3,)


def test_a_full_disk_acknowledges_nothing_that_is_not_kept(tmp_path: Path) -> None:
    """A real SQLITE_FULL, by a page limit on the writer: 503 by the service's own error, then space, then the retry."""
    folder = write_bundle(tmp_path / "bundle", name="demo", trials=300, practice=0, side=8)
    with Service(tmp_path) as service:
        service.open_study(folder, per_condition=1)
        token = service.begin("demo")
        service.consent(token, True)
        service.ready(token)
        service.ready(token, "example")
        limit(service, used(service) + 4)
        kept, refused = [], None
        while refused is None and len(kept) < 300:
            answer = Answer(**body(len(kept)))
            try:
                code = service.record(token, answer).code
            except StoreError:
                refused = answer
            else:
                kept += [answer.attempt_id] * (code == 201)
        assert refused is not None
        assert 0 < len(kept) < 300
        with sqlite3.connect(tmp_path / "foretell.db") as db:
            stored = [row[0] for row in db.execute("SELECT attempt_id FROM response ORDER BY seq")]
        assert stored == kept
        limit(service, 2**30)
        assert service.record(token, refused).code == 201
        assert service.verify() == []


def used(service: Service) -> int:
    return int(service._store.write(lambda db: db.exec_driver_sql("PRAGMA page_count").scalar_one()))


def limit(service: Service, pages: int) -> None:
    service._store.write(lambda db: db.exec_driver_sql(f"PRAGMA max_page_count = {pages}").scalar_one())


def test_wrong_order_and_replayed_posts_from_many_threads(server: Server) -> None:
    """Eight threads send the same ten answers in their own orders until each is kept: one row a trial, no gap."""
    with httpx.Client(base_url=f"{server.url}/api/v1", timeout=40) as http:
        taking_part(http)
        answers = [body(index) for index in range(10)]
        codes: list[int] = []

        def send(first: int) -> None:
            for turn in range(40):
                sent = answers[(first * 3 + turn * 7) % 10]
                codes.append(http.post("responses", json=sent).status_code)

        threads = [threading.Thread(target=send, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        for sent in answers:
            http.post("responses", json=sent)
    assert set(codes) <= {200, 201, 425}
    server.stop()
    with Service(server.home) as service:
        assert service.verify() == []
    with sqlite3.connect(server.home / "foretell.db") as db:
        rows = db.execute("SELECT trial_index, attempt_id FROM response ORDER BY seq").fetchall()
    assert rows == [(index, sent["attempt_id"]) for index, sent in enumerate(answers)]
