"""The database in trouble under a real server: locked by another process, disk full. Nothing acknowledged is lost."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from study.participation.payloads import TrialResponse
from study.service import Service
from study.store import StoreError
from tests.conftest import write_bundle
from tests.server import Server, serving
from tests.study.participants import to_trials

LOCK = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
time.sleep(1.5)
db.execute("COMMIT")
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("database")
    with Service(home) as service:
        folder = write_bundle(home / "bundle", name="demo", trials=12, practice=0, side=8)
        service.researcher.open_study(folder, per_condition=2)
    with serving(home) as running:
        yield running


def taking_part(http: httpx.Client) -> None:
    """Up to the first trial; the token goes with every request."""
    http.headers["X-Session-Token"] = http.post("begin", json={"study": "demo"}).json()["token"]
    http.post("consent", json={"agreed": True})
    for stage in ("instructions", "example"):
        assert http.post("ready", json={"stage": stage}).status_code == 200


def kept(server: Server, sent: Iterable[dict[str, Any]]) -> list[tuple[int, str]]:
    """The answers of the person who sent these, as they are stored: trial and attempt, in the order of the chain."""
    attempts = [answer["attempt_id"] for answer in sent]
    with sqlite3.connect(server.home / "foretell.db") as db:
        [(person,)] = db.execute("SELECT session_id FROM response WHERE attempt_id = ?", attempts[:1]).fetchall()
        mine = "SELECT trial_index, attempt_id FROM response WHERE session_id = ? ORDER BY seq"
        return db.execute(mine, (person,)).fetchall()


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
        sent = [body(index) for index in range(3)]
        codes = [http.post("responses", json=answer).status_code for answer in sent]
        assert holder.wait(300) == 0
    assert codes == [201] * 3
    assert kept(server, sent) == [(index, answer["attempt_id"]) for index, answer in enumerate(sent)]


def test_a_full_disk_acknowledges_nothing_that_is_not_kept(tmp_path: Path) -> None:
    """A real SQLITE_FULL, by a page limit on the writer: 503 by the service's own error, then space, then the retry."""
    folder = write_bundle(tmp_path / "bundle", name="demo", trials=100, practice=0, side=8)
    with Service(tmp_path) as service:
        service.researcher.open_study(folder, per_condition=1)
        token = service.participant.begin("demo")
        service.participant.consent(token, True)
        service.participant.ready(token)
        service.participant.ready(token, "example")
        limit(service, used(service) + 4)
        acknowledged, refused = [], None
        while refused is None and len(acknowledged) < 100:
            answer = TrialResponse(**body(len(acknowledged)))
            try:
                code = service.participant.record(token, answer).code
            except StoreError:
                refused = answer
            else:
                acknowledged += [answer.attempt_id] * (code == 201)
        assert refused is not None
        assert 0 < len(acknowledged) < 100
        with sqlite3.connect(tmp_path / "foretell.db") as db:
            stored = [row[0] for row in db.execute("SELECT attempt_id FROM response ORDER BY seq")]
        assert stored == acknowledged
        limit(service, 2**30)
        assert service.participant.record(token, refused).code == 201
        assert service.researcher.verify() == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 8 MiB; skipped visibly where none may be mounted."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system may be mounted here: run as root on Linux")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_really_full_disk_refuses_in_words_and_goes_on(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No space left on the device (ENOSPC) under a real server: 503 in words, then room, then the same again is 201."""
    monkeypatch.setattr("study.workspace.disk.LEAST_FREE", 0)  # here only: the server lets nobody new in on such a disk
    with Service(small_disk) as service:
        folder = write_bundle(tmp_path / "bundle", name="demo", trials=300, practice=0, side=8)
        service.researcher.open_study(folder, per_condition=1)
        token = service.participant.begin("demo")
        to_trials(service, token)
    with serving(small_disk) as running, httpx.Client(base_url=f"{running.url}/api/v1", timeout=40) as http:
        http.headers["X-Session-Token"] = token
        refused = http.post("begin", json={"study": "demo"})
        assert (refused.status_code, "is paused" in refused.json()["error"]) == (410, True)
        filler = small_disk / "filler"
        with pytest.raises(OSError, match="No space left"):
            filler.write_bytes(bytes(1 << 23))
        sent, reply = [], None
        while reply is None or reply.status_code == 201:
            sent.append(body(len(sent)))
            reply = http.post("responses", json=sent[-1])
        assert (reply.status_code, reply.headers["Retry-After"]) == (503, "1")
        assert reply.json()["detail"].startswith("The server cannot do this now")
        filler.unlink()
        assert http.post("responses", json=sent[-1]).status_code == 201
    assert "full" in running.log()
    assert kept(running, sent) == [(index, answer["attempt_id"]) for index, answer in enumerate(sent)]
    with Service(small_disk) as service:
        assert service.researcher.verify() == []


def used(service: Service) -> int:
    return int(service.workspace.store.write(lambda db: db.exec_driver_sql("PRAGMA page_count").scalar_one()))


def limit(service: Service, pages: int) -> None:
    service.workspace.store.write(lambda db: db.exec_driver_sql(f"PRAGMA max_page_count = {pages}").scalar_one())


def test_wrong_order_and_replayed_posts_from_many_threads(server: Server) -> None:
    """Eight threads send the same ten answers in their own orders until each is kept: one row a trial, no gap."""
    with httpx.Client(base_url=f"{server.url}/api/v1", timeout=40) as http:
        taking_part(http)
        answers = [body(index) for index in range(10)]
        codes: list[int] = []

        def send(first: int) -> None:
            for turn in range(20):
                sent = answers[(first * 3 + turn * 7) % 10]
                codes.append(http.post("responses", json=sent).status_code)

        threads = [threading.Thread(target=send, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
        for sent in answers:
            http.post("responses", json=sent)
    assert set(codes) <= {200, 201, 425}
    server.stop()
    with Service(server.home) as service:
        assert service.researcher.verify() == []
    assert kept(server, answers) == [(index, sent["attempt_id"]) for index, sent in enumerate(answers)]
