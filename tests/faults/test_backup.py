"""A backup taken while people answer restores to a database that verifies, elsewhere, and goes on from there."""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result
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
from tests.server import ROOT, Server, serving
from tests.study.participants import answer, query, to_trials

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
        folder = backup(service.researcher, tmp_path / "backup").folder
    ended.set()
    after = len(before) + 5
    wait_for(lambda: sum(len(client.acknowledged) for client in clients) > after)
    stop.set()
    for client in clients:
        client.join(300)
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
        assert service.participant.read_asset("demo", state["trial"]["target"])
        assert all(status.folder.is_relative_to(other) for status in service.researcher.studies())
        assert service.researcher.studies()[0].sessions["live"]
    monkeypatch.setenv(VARIABLE, str(tmp_path / "third"))
    monkeypatch.setenv(DATABASE, elsewhere)
    with pytest.raises(ForetellError, match="already"):
        CliRunner().invoke(cli.build_app(), ["restore", str(folder)], catch_exceptions=False)


def mine(service: Service) -> list[tuple[int]]:
    [(who,)] = query(service, "SELECT session_id FROM session ORDER BY n_resumes DESC LIMIT 1")
    return query(service, f"SELECT trial_index FROM response WHERE session_id = '{who}'")  # type: ignore[return-value]


def wait_for(done: Callable[[], bool], patience_s: float = 300) -> None:
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
        return backup(service.researcher, tmp_path / "backup").folder


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


def test_a_backup_that_is_none_is_refused(small: Path, tmp_path: Path) -> None:
    manifest = next(small.glob("bundles/*/manifest.json"))
    manifest.write_text(manifest.read_text().replace("demo", "omed"))
    with pytest.raises(ForetellError, match="was changed"):
        restore(small, tmp_path / "other")
    with pytest.raises(ForetellError, match="is not a backup"):
        restore(tmp_path / "nothing", tmp_path / "other")
    with pytest.raises(ForetellError, match="is a backup of sqlite"):
        restore(small, tmp_path / "other", "postgresql://localhost/x")


def run_command(*words: str) -> Result:
    return CliRunner().invoke(cli.build_app(), list(words), catch_exceptions=False)


@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_a_damaged_image_is_said_and_the_responses_are_saved(
    tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    """Catches a backup of a damaged bundle that ends with exit code 0 and cannot be restored."""
    home = tmp_path / "home"
    victim = next(home.glob("bundles/*/assets/*"))
    victim.unlink()
    if damage == "changed":
        victim.write_bytes(b"x")
    with Service(home) as service:
        [fault] = service.researcher.verify()
        assert victim.name in fault
        made = backup(service.researcher, tmp_path / "damaged")
    assert [victim.name in fault for fault in made.faults] == [True]
    faults = restore(tmp_path / "damaged", tmp_path / "other")
    assert [victim.name in fault for fault in faults] == [True]
    monkeypatch.setenv(VARIABLE, str(home))
    done = run_command("backup", str(tmp_path / "told"))
    assert done.exit_code == 1
    assert victim.name in done.output


def test_the_commands(tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "home"))
    done = run_command("backup", str(tmp_path / "again"))
    said = f"{tmp_path / 'again'}: 1 version(s) of studies, 0 responses, the last: none\n"
    assert (done.exit_code, done.output) == (0, said)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "new"))
    done = run_command("restore", str(tmp_path / "again"))
    assert done.exit_code == 0
    assert "match the backup" in done.output


def test_a_backup_for_cron_says_what_is_missing(tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a job that saves a workspace without the responses that its owner expects, with exit code 0."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "home"))
    done = run_command("backup", str(tmp_path / "few"), "--at-least", "1")
    assert (done.exit_code, "Only 0 responses" in done.output) == (1, True)
    assert (tmp_path / "few" / LABEL).is_file()
    done = run_command("backup", str(tmp_path / "old"), "--newest-within", "24")
    assert (done.exit_code, "older than 24 hours" in done.output) == (1, True)
    with Service(tmp_path / "home") as service:
        token = service.participant.begin("demo")
        to_trials(service, token)
        service.participant.record(token, answer(0))
    done = run_command("backup", str(tmp_path / "now"), "--at-least", "1", "--newest-within", "24")
    assert done.exit_code == 0
    assert "1 responses, the last: number 1, " in done.output


READING = ("backup saved", "export demo", "verify demo", "doctor", "members demo", "bonus demo", "access demo open")


@pytest.mark.parametrize("command", READING)
def test_commands_that_read_make_no_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """Catches a cron line without FORETELL_HOME, which saved an empty workspace of its own making with exit code 0."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    if command == "doctor":
        assert "does not exist yet" in run_command(command).output
    else:
        with pytest.raises(ForetellError, match=r"no workspace at .*none|There is no built study"):
            run_command(*command.split())
    assert list(tmp_path.iterdir()) == []


def test_the_restore_drill_of_the_guide(tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a drill that cannot be followed: its commands are those of docs/deploy.md."""
    section = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8").split("### Restore drill")[1].split("\n## ")[0]
    commands = re.findall(r"^(FORETELL_HOME=(\S+) )?python3 foretell\.py (.+)$", section, re.MULTILINE)
    assert [words.split()[0] for _, _, words in commands] == ["backup", "restore", "verify"]
    places = {"/srv/drill": str(tmp_path / "drill"), "/srv/foretell/workspace": str(tmp_path / "home")}
    for _, *given in commands:
        home, words = (re.sub("|".join(places), lambda place: places[place[0]], text) for text in given)
        monkeypatch.setenv(VARIABLE, home)
        done = run_command(*words.split())
        assert done.exit_code == 0, done.output
