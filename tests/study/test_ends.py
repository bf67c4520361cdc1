"""A database whose newest rows are missing: the chain itself is whole, the ends kept outside of it are not met."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dashboard.cli import main as cli
from study.service import Service
from study.store import StoreError, responses, witness
from tests.study.participants import MakeBundle, answer, query, take_part, tamper, to_trials

FILES = ("participants.key", "identity.db", "foretell.ends")


@pytest.fixture
def token(service: Service, bundle: MakeBundle) -> str:
    """Somebody in the middle; their first five responses are in the database's file, the rest in its log alone."""
    study = service.researcher.open_study(bundle(), per_condition=4)
    token = service.participant.begin(study)
    to_trials(service, token)
    for index in range(5):
        service.participant.record(token, answer(index))
    service.workspace.store.erased = True
    assert service.workspace.store.forget_erased()
    return token


@pytest.fixture
def reader(service: Service, token: str) -> Iterator[None]:
    """A program that reads the database as it was: what is written meanwhile stays in the log alone."""
    with closing(sqlite3.connect(service.workspace.home / "foretell.db")) as db:
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM response").fetchone()
        yield


def lose_log(service: Service, folder: Path) -> Path:
    """What a kill leaves where somebody deletes ``-wal``, or copies ``foretell.db`` alone."""
    folder.mkdir()
    for name in ("foretell.db", *FILES):
        shutil.copy2(service.workspace.home / name, folder / name)
    return folder


@pytest.mark.usefixtures("reader")
def test_a_lost_tail_is_named(service: Service, token: str, tmp_path: Path) -> None:
    """9 of 351 responses were missing, and verify called the rest sound."""
    for index in range(5, 14):
        service.participant.record(token, answer(index))
    service.workspace.keep_watch()
    [(at,)] = query(service, "SELECT datetime(received_at / 1000000000, 'unixepoch') FROM response WHERE seq = 14")
    home = lose_log(service, tmp_path / "lost")
    with sqlite3.connect(home / "foretell.db") as db:
        assert db.execute("SELECT count(*) FROM response").fetchone() == (5,)
    with Service(home) as later:
        assert later.researcher.workspace.store.read(lambda db: list(responses.find_broken_links(db))) == []
        [fault, *_] = later.researcher.verify()
        assert fault.startswith(f"The response number 14 ({at} UTC) is not the one that was acknowledged: 9 at the end")
        assert later.researcher.last_response().startswith("number 5, ")
        with pytest.raises(StoreError, match="Until then nothing is stored"):
            later.participant.begin("demo", participant="another")
        with pytest.raises(StoreError, match="Until then nothing is stored"):
            later.workspace.keep_watch()
    with Service(home) as later:
        assert "number 14" in later.researcher.verify()[0]
    told = CliRunner().invoke(cli.build_app(), ["verify", str(home / "foretell.db")])
    assert told.exit_code == 1
    assert told.output.startswith("Last response: number 5, ")


@pytest.mark.usefixtures("reader")
def test_others_in_the_place_of_what_was_lost_are_named_too(service: Service, token: str, tmp_path: Path) -> None:
    service.participant.record(token, answer(5))
    service.workspace.keep_watch()
    home = lose_log(service, tmp_path / "lost")
    ends = (home / "foretell.ends").read_bytes()
    (home / "foretell.ends").unlink()
    with Service(home) as later:
        for index in range(5, 8):
            later.participant.record(token, answer(index))
        (home / "foretell.ends").write_bytes(ends)
        assert later.researcher.workspace.store.read(lambda db: list(responses.find_broken_links(db))) == []
        assert "others took their place" in later.researcher.verify()[0]


def test_a_lost_act_is_named(service: Service, token: str, tmp_path: Path) -> None:
    """A withdrawal that is cut off would bring back what was erased."""
    service.participant.withdraw(service.participant.state(token)["withdrawal_code"])
    service.workspace.keep_watch()
    shutil.rmtree(tmp_path / "lost", ignore_errors=True)
    home = lose_log(service, tmp_path / "lost")
    tampered = Service(home)
    assert tampered.researcher.verify() == []
    tamper(tampered, "DELETE FROM audit WHERE act = 'withdrew'")
    assert "audit entry number 2" in tampered.researcher.verify()[0]
    tampered.close()


@pytest.mark.parametrize("change", [lambda text: text[: len(text) // 2], lambda text: "[]", lambda text: "{}"])
def test_a_file_that_cannot_be_read_is_written_again(
    service: Service, token: str, change: Callable[[str], str]
) -> None:
    service.workspace.keep_watch()
    whole = service.workspace.ends_file.read_text()
    service.workspace.ends_file.write_text(change(whole))
    assert service.researcher.verify() == []
    service.workspace.keep_watch()
    assert service.workspace.ends_file.read_text() == whole
    assert service.workspace.ends_file.stat().st_mode & 0o777 == 0o600


def test_whoever_is_killed_between_two_writings_is_sound(service: Service, bundle: MakeBundle) -> None:
    """The file may be behind the database, never ahead of it; also when the last response was erased."""
    study = service.researcher.open_study(bundle(), per_condition=4)
    take_part(service, service.participant.begin(study))
    service.workspace.keep_watch()
    token = service.participant.begin(study)
    take_part(service, token)
    assert service.researcher.verify() == []
    service.participant.withdraw(service.participant.state(token)["withdrawal_code"])
    service.workspace.keep_watch()
    kept = witness.read(service.workspace.ends_file)
    assert kept is not None
    assert (kept.response, kept.response_at, service.researcher.verify()) == (30, 0, [])
