"""The database's own promises: durability settings, one writer, append-only tables, migrations, the hash chain."""

import hashlib
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, inspect, text

from study.bundle import canonical
from study.service import Service
from study.simulate import simulate
from study.store import Store, StoreError, repository, responses
from study.store.database import engine
from study.store.database.writer import Writer
from study.store.migrations import MIGRATIONS, fingerprint, migrate
from study.store.tables import METADATA
from tests.conftest import MakeBundle


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'test.db'}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = Store(url)
    yield opened
    opened.close()


@pytest.fixture
def writing(url: str) -> Iterator[Engine]:
    made = engine.create_write_engine(url)
    with made.begin() as db:
        db.exec_driver_sql("CREATE TABLE t(x INTEGER PRIMARY KEY)")
    yield made
    made.dispose()


def insert(x: int) -> object:
    def work(db: Connection) -> int:
        db.execute(text("INSERT INTO t VALUES (:x)"), {"x": x})
        return x

    return work


def rows(made: Engine) -> list[int]:
    with made.begin() as db:
        return list(db.execute(text("SELECT x FROM t ORDER BY x")).scalars())


def test_every_connection_has_the_durable_settings(store: Store) -> None:
    """synchronous 2 is FULL. Catches a pragma set once on the file instead of on each connection."""
    wanted = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30000}
    for run in (store.read, store.write):
        found = run(lambda db: {name: db.exec_driver_sql(f"PRAGMA {name}").scalar() for name in wanted})
        assert found == wanted


def test_readers_cannot_write(store: Store) -> None:
    with pytest.raises(Exception, match="readonly"):
        store.read(lambda db: db.exec_driver_sql("CREATE TABLE sneaked(x)"))


def test_tables_match_the_migrated_database(store: Store, url: str) -> None:
    """Catches a column added to the queries and not to a migration, or the reverse."""
    made = engine.create_write_engine(url)
    found = inspect(made)
    assert set(found.get_table_names()) == set(METADATA.tables) | {"schema_version"}
    for name, table in METADATA.tables.items():
        columns = {column["name"]: column["type"].compile(made.dialect) for column in found.get_columns(name)}
        assert columns == {column.name: column.type.compile(made.dialect) for column in table.columns}, name
    made.dispose()


def test_migrations_run_once_in_order_and_are_recorded(url: str) -> None:
    made = engine.create_write_engine(url)
    first = ("CREATE TABLE a(x INTEGER)",)
    assert migrate(made, {"sqlite": (first,)}) == 1
    assert migrate(made, {"sqlite": (first, ("ALTER TABLE a ADD COLUMN y INTEGER",))}) == 2
    assert migrate(made, {"sqlite": (first, ("ALTER TABLE a ADD COLUMN y INTEGER",))}) == 2
    with made.begin() as db:
        recorded = db.execute(text("SELECT version, sha256 FROM schema_version ORDER BY version")).all()
    assert tuple(recorded[0]) == (1, fingerprint(first))
    assert [column["name"] for column in inspect(made).get_columns("a")] == ["x", "y"]
    made.dispose()


@pytest.mark.parametrize(
    "versions", [(("CREATE TABLE a(x INTEGER)", "NONSENSE"),), (("CREATE TABLE a(x INTEGER)",), ("NONSENSE",))]
)
def test_a_failing_migration_leaves_nothing(url: str, versions: tuple[tuple[str, ...], ...]) -> None:
    """Catches a database that an update which failed leaves between two versions."""
    made = engine.create_write_engine(url)
    with pytest.raises(Exception, match="syntax error"):
        migrate(made, {"sqlite": versions})
    assert "a" not in inspect(made).get_table_names()
    made.dispose()


def test_a_newer_database_is_refused(url: str) -> None:
    made = engine.create_write_engine(url)
    migrate(made)
    with made.begin() as db:
        db.exec_driver_sql(f"INSERT INTO schema_version VALUES ({len(MIGRATIONS['sqlite']) + 1}, 0, 'x')")
    made.dispose()
    with pytest.raises(StoreError, match="Use a newer Foretell"):
        Store(url)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("this is not a database, it is a text of more than a hundred bytes " * 4)
    with pytest.raises(StoreError, match=r"notes\.txt cannot be used"):
        Store(f"sqlite:///{path}")
    assert path.read_text().startswith("this is not")


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be used"):
        Store(f"sqlite:///{tmp_path}")


@pytest.mark.parametrize("url", ["mysql://host/db", "foretell.db"])
def test_other_databases_are_refused_in_words(url: str) -> None:
    with pytest.raises(StoreError, match="Use sqlite:"):
        Store(url)


def test_a_failing_job_fails_alone(writing: Engine) -> None:
    """Jobs queued together share a commit; the middle one breaks a rule and only it is undone."""
    writer = Writer(writing)
    gate = threading.Event()
    held = writer.submit(lambda db: gate.wait(300))
    futures = [writer.submit(insert(x)) for x in (1, 1, 2)]  # type: ignore[arg-type]
    gate.set()
    assert held.result(300)
    assert futures[0].result(300) == 1
    with pytest.raises(StoreError, match="UNIQUE"):
        futures[1].result(300)
    assert futures[2].result(300) == 2
    writer.close()
    assert rows(writing) == [1, 2]


def test_work_before_an_error_in_the_same_job_is_undone(writing: Engine) -> None:
    writer = Writer(writing)

    def half(db: Connection) -> None:
        insert(5)(db)  # type: ignore[operator]
        raise ValueError("half done")

    with pytest.raises(ValueError, match="half done"):
        writer.run(half)
    writer.close()
    assert rows(writing) == []


def test_nothing_is_acknowledged_when_sqlite_gives_up_the_transaction(
    writing: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk SQLite rolls the whole transaction back by itself; every job of the group must then fail."""
    monkeypatch.setattr("study.store.database.writer.LONGEST_S", 60)  # a busy machine would else end the group too soon
    writer = Writer(writing)
    gate = threading.Event()
    first = writer.submit(lambda db: gate.wait(300))
    before = writer.submit(insert(1))  # type: ignore[arg-type]
    broken = writer.submit(lambda db: db.connection.dbapi_connection.execute("ROLLBACK"))  # type: ignore[union-attr]
    gate.set()
    for future in (first, before, broken):
        with pytest.raises(Exception):  # noqa: B017, PT011 - StoreError, or SQLAlchemy's own complaint wrapped by it
            future.result(300)
    assert writer.run(insert(2)) == 2  # type: ignore[arg-type]
    writer.close()
    assert rows(writing) == [2]


def test_a_full_disk_loses_no_acknowledged_row(tmp_path: Path) -> None:
    """A real SQLITE_FULL, by a page limit: what was acknowledged is there, what was refused is not."""
    made = engine.create_write_engine(f"sqlite:///{tmp_path / 'small.db'}")
    with made.begin() as db:
        db.exec_driver_sql("CREATE TABLE t(x INTEGER PRIMARY KEY, filler TEXT)")
    writer = Writer(made)
    writer.run(lambda db: db.exec_driver_sql("PRAGMA max_page_count = 40").scalar())

    def fat(x: int) -> object:
        return lambda db: db.execute(text("INSERT INTO t VALUES (:x, :f)"), {"x": x, "f": "f" * 3000}) and x

    futures = [writer.submit(fat(x)) for x in range(60)]  # type: ignore[arg-type]
    kept = {x for x, future in enumerate(futures) if future.exception(10) is None}
    writer.close()
    assert set(rows(made)) == kept
    assert 0 < len(kept) < 60
    made.dispose()


def test_many_threads_lose_nothing(writing: Engine) -> None:
    writer = Writer(writing)
    kept: list[int] = []

    def client(start: int) -> None:
        kept.extend(writer.run(insert(start + k)) for k in range(25))  # type: ignore[arg-type,misc]

    threads = [threading.Thread(target=client, args=(100 * n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    writer.close()
    assert sorted(kept) == rows(writing)
    assert len(kept) == 400


def test_a_result_is_visible_to_others_at_once(store: Store, tmp_path: Path) -> None:
    """Catches a future resolved before the commit."""
    other = sqlite3.connect(tmp_path / "test.db")
    for n in range(20):
        values = (f"hash-{n}", f"name-{n}", "folder", n)
        store.write(
            lambda db, v=values: db.exec_driver_sql("INSERT INTO study_version VALUES (?,?,?,?,'open',0,'open')", v)
        )
        assert other.execute("SELECT count(*) FROM study_version").fetchone() == (n + 1,)
    other.close()


def test_close_commits_what_is_queued_and_then_refuses(writing: Engine) -> None:
    writer = Writer(writing)
    futures = [writer.submit(insert(x)) for x in range(50)]  # type: ignore[arg-type]
    writer.close()
    assert [future.result(0) for future in futures] == rows(writing) == list(range(50))
    with pytest.raises(StoreError, match="closed"):
        writer.submit(insert(99))  # type: ignore[arg-type]


VERSION_1 = """
INSERT INTO study_version VALUES ('h', 'demo', '/f', 1, 'open');
INSERT INTO session(session_id, study, study_hash, participant_id, mode, token_hash, stage, position, practice, main,
  condition, side_flip, order_seed, started_at, last_seen)
  VALUES ('s', 'demo', 'h', 'p', 'live', 't', 'main', 1, 0, 2, 'none', 0, 1, 5, 6),
         ('u', 'demo', 'h', 'q', 'live', 'v', 'instructions', 0, 0, 2, 'both', 0, 1, 5, 6);
INSERT INTO allocation_slot(study_hash, mode, block, condition, side_flip, order_seed, state, session_id)
  VALUES ('h', 'live', 0, 'none', 0, 1, 'held', 's');
INSERT INTO consent VALUES ('s', 'x', 'en', 1, 5);
INSERT INTO trial_plan VALUES ('s', 0, 'main', 'm0', 'a', '{}', 'z'), ('s', 1, 'main', 'm1', 'a', '{}', 'z');
"""

ANSWER_1 = {
    "session_id": "s", "trial_index": 0, "attempt_id": "a", "choice": "a", "side": "left", "input": "key",
    "rt_ms": 500.0, "onset_ms": None, "event_ms": None, "handler_ms": None, "time_origin_ms": None, "frame_hz": None,
    "n_exposures": 1, "resumed": 0, "blur_ms": 0.0, "shown_sha256": "z", "received_at": 7, "seq": 1,
    "prev_hash": "0" * 64,
}  # fmt: skip


def test_a_database_of_version_1_goes_on(url: str, tmp_path: Path) -> None:
    """A version 1 file with people and an answer, hashed as version 1 did (SHA-256 of its columns as sorted JSON)."""
    made = engine.create_write_engine(url)
    migrate(made, {"sqlite": MIGRATIONS["sqlite"][:1]})
    made.dispose()
    row = {**ANSWER_1, "row_hash": hashlib.sha256(canonical(ANSWER_1)).hexdigest()}
    with sqlite3.connect(tmp_path / "test.db") as db:
        db.executescript(VERSION_1)
        db.execute(f"INSERT INTO response({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values()))
    db.close()
    store = Store(url)
    assert store.read(lambda db: list(responses.find_broken_links(db))) == []
    kept = store.read(lambda db: repository.every_session(db))
    assert [(s["session_id"], s["stage"], s["agreed_at"]) for s in kept] == [("s", "main", 5), ("u", "example", None)]
    found = store.write(lambda db: db.exec_driver_sql("PRAGMA foreign_key_check").fetchall())
    assert found == []
    for table in ("trial_plan", "consent", "response"):
        with pytest.raises(StoreError, match="append-only"):
            store.write(lambda db, t=table: db.exec_driver_sql(f"DELETE FROM {t}"))
    with pytest.raises(StoreError, match="FOREIGN KEY"):
        store.write(lambda db: db.exec_driver_sql("INSERT INTO withdrawal VALUES ('nobody', 1)"))
    store.close()


def test_a_response_costs_few_bytes_of_log(bundle: MakeBundle, service: Service) -> None:
    """An index on random values, a page of overflow or a row written twice: each is a page for each response.

    20 KB with the keys and indexes of schema version 4, 5 with those of version 5; with pages of 4 KB it was 32.
    """
    name = service.researcher.open_study(bundle(trials=20), per_condition=4)
    log = service.workspace.home / "foretell.db-wal"
    before = log.stat().st_size
    responses = simulate(service, name, 16, {"guesser": 1.0}, 0)
    assert responses == 16 * 23
    assert (log.stat().st_size - before) / 1024 / responses < 7


def test_the_log_is_copied_next_to_the_writer(bundle: MakeBundle, service: Service, tmp_path: Path) -> None:
    """Catches a log that only the writer copies: it stopped for half a second whenever the log reached its limit.

    The database file alone, without its log, has every response then, and a writer at work is not waited for.
    """
    name = service.researcher.open_study(bundle(trials=20), per_condition=4)
    responses = simulate(service, name, 4, {"guesser": 1.0}, 0)
    shown, gate = threading.Event(), threading.Event()
    held = service.workspace.store.submit(lambda _: (shown.set(), gate.wait(300)))
    assert shown.wait(300)
    service.workspace.store.copy_log()
    gate.set()
    held.result()
    service.workspace.keep_watch()
    with sqlite3.connect(shutil.copy(service.workspace.home / "foretell.db", tmp_path / "alone.db")) as alone:
        assert alone.execute("SELECT count(*) FROM response").fetchone() == (responses,)


def test_who_stops_waiting_stops_neither_the_writer_nor_their_own_write(store: Store) -> None:
    """Catches a cancelled request whose future the writer cannot resolve: its thread ends, and with it every write."""
    kept: list[int] = []
    gate = threading.Event()
    store.submit(lambda _: gate.wait(300))
    left = store.submit(lambda _: kept.append(1))
    assert not left.cancel()
    gate.set()
    assert store.write(lambda _: len(kept)) == 1
