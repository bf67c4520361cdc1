"""A backup taken while people answer restores to a database that verifies, elsewhere, and goes on from there."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.errors import ForetellError
from dashboard.cli import main as cli
from study.collection.backup import LABEL, backup, restore
from study.participation.links import signature
from study.participation.payloads import Recruit
from study.service import Service
from study.workspace.workspace import DATABASE, VARIABLE
from tests.conftest import write_bundle
from tests.faults.soak import Client
from tests.server import Server, serving
from tests.study.participants import query

CLIENTS, TRIALS = 4, 400


@pytest.fixture
def elsewhere(request: pytest.FixtureRequest, database: str, tmp_path: Path) -> str:
    """URL of another, empty database of the same kind."""
    if database == "postgresql":
        return str(request.getfixturevalue("postgresql").database())
    return f"sqlite:///{tmp_path / 'other' / 'foretell.db'}"


@pytest.fixture
def server(tmp_path: Path, database: str) -> Iterator[Server]:
    home = tmp_path / "home"
    with Service(home) as service:
        folder = write_bundle(home / "bundles" / "demo-1", name="demo", trials=TRIALS, practice=0, side=8)
        service.researcher.open_study(folder, per_condition=CLIENTS)
    with serving(home) as running:
        yield running


def test_a_backup_under_load_restores_to_a_database_that_verifies(
    server: Server, tmp_path: Path, elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, ended = threading.Event(), threading.Event()
    clients = [Client(server.url, number, stop) for number in range(CLIENTS)]
    for client in clients:
        client.gates = {TRIALS - 1: ended}  # nobody is done before the backup, however long it takes
        client.start()
    wait_for(lambda: all(len(client.acknowledged) > 5 for client in clients))
    before = {row for client in clients for row in list(client.acknowledged)}
    with Service(server.home) as service:
        folder = backup(service.researcher, tmp_path / "backup")
    ended.set()
    after = len(before) + 5
    wait_for(lambda: sum(len(client.acknowledged) for client in clients) > after)
    stop.set()
    for client in clients:
        client.join(30)
    assert [client.failure for client in clients] == [None] * CLIENTS
    server.stop()
    shutil.rmtree(server.home)  # the machine is gone

    other = tmp_path / "other"
    assert restore(folder, other, elsewhere) == []
    acknowledged = {row for client in clients for row in client.acknowledged}
    with Service(other, elsewhere) as service:
        stored = set(query(service, "SELECT attempt_id, trial_index, side FROM response"))
        assert before <= stored <= acknowledged
        signed = signature((other / "participants.key").read_bytes(), "demo", "p0")
        token = service.participant.begin(
            "demo", recruit=Recruit(person="p0", signature=signed)
        )  # the key is there: they are known
        state = service.participant.state(token)
        assert (state["stage"], state["trial"]["index"]) == ("main", sum(1 for _ in mine(service)))
        assert service.participant.asset("demo", state["trial"]["target"]).is_relative_to(other)
        assert service.researcher.studies()[0].sessions["live"]
    monkeypatch.setenv(VARIABLE, str(tmp_path / "third"))
    monkeypatch.setenv(DATABASE, elsewhere)
    with pytest.raises(ForetellError, match="already"):
        CliRunner().invoke(cli.build_app(), ["restore", str(folder)], catch_exceptions=False)


def mine(service: Service) -> list[tuple[int]]:
    [(who,)] = query(service, "SELECT session_id FROM session ORDER BY n_resumes DESC LIMIT 1")
    return query(service, f"SELECT trial_index FROM response WHERE session_id = '{who}'")  # type: ignore[return-value]


def wait_for(done: Callable[[], bool], patience_s: float = 60) -> None:
    deadline = time.monotonic() + patience_s
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    with Service(home) as service:
        service.researcher.open_study(
            write_bundle(home / "bundles" / "demo-1", name="demo", trials=3, practice=0, side=8), per_condition=1
        )
        return backup(service.researcher, tmp_path / "backup")


def test_nobody_else_may_read_a_backup_and_none_is_overwritten(small: Path, tmp_path: Path) -> None:
    assert small.stat().st_mode & 0o077 == 0
    with Service(tmp_path / "home") as service, pytest.raises(ForetellError, match="already exists"):
        backup(service.researcher, small)


def test_a_restore_overwrites_nothing(small: Path, tmp_path: Path) -> None:
    with pytest.raises(ForetellError, match="Restore into an empty workspace"):
        restore(small, tmp_path / "home")


@pytest.mark.parametrize("name", ["../../stolen", "/tmp/stolen", "..", "a/b", ""])
def test_a_backups_names_stay_inside_the_workspace(small: Path, tmp_path: Path, name: str) -> None:
    label = json.loads((small / LABEL).read_text())
    [study_hash] = label["bundles"]
    (small / LABEL).write_text(json.dumps({**label, "bundles": {study_hash: name}}))
    with pytest.raises(ForetellError, match="does not match"):
        restore(small, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_changed_backup_is_found_out(small: Path, tmp_path: Path) -> None:
    victim = next(small.glob("bundles/*/assets/*"))
    victim.write_bytes(b"x")
    with pytest.raises(ForetellError, match="was changed"):
        restore(small, tmp_path / "other")
    with pytest.raises(ForetellError, match="is not a backup"):
        restore(tmp_path / "nothing", tmp_path / "other")
    with pytest.raises(ForetellError, match="is a backup of sqlite"):
        restore(small, tmp_path / "other", "postgresql://localhost/x")


def test_the_verbs(tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "home"))
    run = CliRunner()
    done = run.invoke(cli.build_app(), ["backup", str(tmp_path / "again")], catch_exceptions=False)
    assert (done.exit_code, done.output) == (0, f"{tmp_path / 'again'}\n")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "new"))
    done = run.invoke(cli.build_app(), ["restore", str(tmp_path / "again")], catch_exceptions=False)
    assert done.exit_code == 0
    assert "match the backup" in done.output
