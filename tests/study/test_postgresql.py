"""What PostgreSQL promises in its own way: the same rules, writers that take turns, a server that goes away."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, inspect, text

from study.service import Service
from study.store import Store, StoreError
from study.store.database import engine
from study.store.migrations import MIGRATIONS
from study.store.tables import METADATA
from tests.postgresql import Postgresql
from tests.study.participants import MakeBundle, answer, to_trials


@pytest.fixture
def url(postgresql: Postgresql) -> str:
    return postgresql.database()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = Store(url)
    yield opened
    opened.close()


def rules(made: Engine) -> dict[str, Any]:
    """Of every table: what may be null, what is unique, what refers to what. Order and names are left out."""
    found = inspect(made)
    return {
        name: {
            "null": {c["name"]: c["nullable"] for c in found.get_columns(name)}
            | dict.fromkeys(found.get_pk_constraint(name)["constrained_columns"], False),
            "key": found.get_pk_constraint(name)["constrained_columns"],
            "unique": {tuple(c["column_names"]) for c in found.get_unique_constraints(name)},
            "refers": {(tuple(c["constrained_columns"]), c["referred_table"]) for c in found.get_foreign_keys(name)},
        }
        for name in METADATA.tables
    }


def test_both_databases_have_the_same_columns_and_rules(store: Store, url: str, tmp_path: Any) -> None:
    """Catches a column, a key or a rule that was given to one of the two only."""
    files = Store(f"sqlite:///{tmp_path / 'test.db'}")
    ours, theirs = engine.create_write_engine(url), engine.create_write_engine(f"sqlite:///{tmp_path / 'test.db'}")
    assert rules(ours) == rules(theirs)
    for name, table in METADATA.tables.items():
        columns = {c["name"]: c["type"].compile(ours.dialect) for c in inspect(ours).get_columns(name)}
        assert columns == {c.name: c.type.compile(ours.dialect) for c in table.columns}, name
    files.close()
    ours.dispose()
    theirs.dispose()


def checks(made: Engine, name: str) -> int:
    if made.dialect.name == "sqlite":
        with made.begin() as db:
            sql = db.execute(text("SELECT sql FROM sqlite_master WHERE name = :n AND type = 'table'"), {"n": name})
            return str(sql.scalar_one()).count("CHECK(")
    return len(inspect(made).get_check_constraints(name))


def test_both_databases_check_the_same(store: Store, url: str, tmp_path: Any) -> None:
    """The number of CHECKs of every table; that they hold is tried by the service's tests."""
    files = Store(f"sqlite:///{tmp_path / 'test.db'}")
    ours, theirs = engine.create_write_engine(url), engine.create_write_engine(f"sqlite:///{tmp_path / 'test.db'}")
    assert {n: checks(ours, n) for n in METADATA.tables} == {n: checks(theirs, n) for n in METADATA.tables}
    files.close()
    ours.dispose()
    theirs.dispose()


def test_an_acknowledged_answer_is_on_the_disk_and_readers_cannot_write(store: Store) -> None:
    settings = store.write(
        lambda db: [db.exec_driver_sql(f"SHOW {s}").scalar() for s in ("synchronous_commit", "fsync")]
    )
    assert settings == ["on", "on"]
    assert store.read(lambda db: db.exec_driver_sql("SHOW transaction_isolation").scalar()) == "repeatable read"
    with pytest.raises(StoreError, match="read-only"):
        store.read(lambda db: db.exec_driver_sql("CREATE TABLE sneaked(x INT)"))


@pytest.mark.parametrize("table", ["response", "page_event", "audit", "trial_plan", "withdrawal"])
def test_no_table_is_emptied_in_one_go(store: Store, table: str) -> None:
    """TRUNCATE asks no row's trigger."""
    with pytest.raises(StoreError, match="append-only"):
        store.write(lambda db: db.exec_driver_sql(f"TRUNCATE {table} CASCADE"))


def test_writers_of_several_stores_take_turns(url: str) -> None:
    """Read, then write what was read plus one: without turns some of these would read the same number."""
    stores = [Store(url) for _ in range(3)]
    stores[0].write(lambda db: db.exec_driver_sql("CREATE TABLE n(x BIGINT)"))
    stores[0].write(lambda db: db.exec_driver_sql("INSERT INTO n VALUES (0)"))

    def add(db: Any) -> None:
        x = db.exec_driver_sql("SELECT max(x) FROM n").scalar_one()
        db.exec_driver_sql(f"INSERT INTO n VALUES ({x + 1})")

    threads = [threading.Thread(target=lambda s=s: [s.write(add) for _ in range(20)]) for s in stores for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert stores[0].read(lambda db: db.exec_driver_sql("SELECT count(*), count(DISTINCT x), max(x) FROM n").one()) == (
        181,
        181,
        180,
    )
    for store in stores:
        store.close()


def test_stores_that_open_at_once_make_the_tables_once(url: str) -> None:
    opened: list[Store] = []
    threads = [threading.Thread(target=lambda: opened.append(Store(url))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert len(opened) == 4
    versions = opened[0].read(lambda db: db.exec_driver_sql("SELECT version FROM schema_version ORDER BY 1").all())
    assert [v for (v,) in versions] == list(range(1, len(MIGRATIONS["postgresql"]) + 1))
    for store in opened:
        store.close()


def test_one_failing_job_fails_alone(store: Store) -> None:
    """PostgreSQL ends a transaction at the first error: the savepoint of each job keeps that from the others."""
    store.write(lambda db: db.exec_driver_sql("CREATE TABLE n(x BIGINT PRIMARY KEY)"))
    gate = threading.Event()
    held = store._writer.submit(lambda db: gate.wait(300))
    jobs = [store._writer.submit(lambda db, x=x: db.exec_driver_sql(f"INSERT INTO n VALUES ({x})")) for x in (1, 1, 2)]
    gate.set()
    held.result(300)
    with pytest.raises(StoreError, match="duplicate key"):
        jobs[1].result(300)
    jobs[2].result(300)
    assert store.read(lambda db: db.exec_driver_sql("SELECT x FROM n ORDER BY x").all()) == [(1,), (2,)]


def test_a_connection_that_breaks_acknowledges_nothing_of_its_group(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "study.store.database.writer.LONGEST_S", 60
    )  # a busy machine would else end the group before it is whole
    store.write(lambda db: db.exec_driver_sql("CREATE TABLE n(x BIGINT PRIMARY KEY)"))
    gate = threading.Event()
    held = store._writer.submit(lambda db: gate.wait(300))
    before = store._writer.submit(lambda db: db.exec_driver_sql("INSERT INTO n VALUES (1)"))
    broken = store._writer.submit(lambda db: db.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())"))
    gate.set()
    for future in (held, before, broken):
        with pytest.raises(StoreError):
            future.result(300)
    store.write(lambda db: db.exec_driver_sql("INSERT INTO n VALUES (2)"))
    assert store.read(lambda db: db.exec_driver_sql("SELECT x FROM n").all()) == [(2,)]


def test_a_server_that_is_away_is_said_in_words_without_the_password() -> None:
    with pytest.raises(StoreError, match=r"cannot be used as the database .* Start it") as refused:
        Store("postgresql://me:secret@127.0.0.1:9/none")
    assert "secret" not in str(refused.value)


@pytest.mark.slow
def test_a_server_that_dies_costs_nothing_acknowledged(
    postgresql: Postgresql, url: str, tmp_path: Any, bundle: MakeBundle
) -> None:
    """Killed between two answers: the next is refused, and kept when it is sent again to the server that came back."""
    with Service(tmp_path, url) as service:
        study = service.researcher.open_study(bundle(), per_condition=1)
        token = service.participant.begin(study)
        to_trials(service, token)
        assert service.participant.record(token, answer(0)).code == 201
        postgresql.kill()
        again = answer(1)
        try:
            for call in (
                lambda: service.participant.record(token, again),
                lambda: service.participant.state(token),
                service.researcher.studies,
            ):
                with pytest.raises(StoreError):
                    call()
        finally:
            postgresql.start()
        assert service.participant.record(token, again).code == 201
        assert service.participant.record(token, again).code == 200
        postgresql.kill()
        postgresql.start()  # away while nobody asked: the first who asks does not notice
        assert service.participant.state(token)["trial"]["index"] == 2
        assert service.participant.record(token, answer(2)).code == 201
        assert service.researcher.verify() == []
