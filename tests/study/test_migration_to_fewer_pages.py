"""A database of schema version 4 goes on under version 5: the chain, the rules, and what was recorded are the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text

from study.bundle import canonical
from study.store import Store, StoreError, repository, responses, subject
from study.store.database import engine
from study.store.migrations import MIGRATIONS, migrate
from tests.postgresql import FOUND, Postgresql

VERSION_4 = (
    "INSERT INTO study_version(study_hash, name, folder, opened_at, state) VALUES ('h', 'demo', '/f', 1, 'open')",
    "INSERT INTO session(session_id, study, study_hash, participant_id, mode, token_hash, stage, position, practice, "
    "main, condition, side_flip, order_seed, started_at, last_seen) VALUES "
    "('s', 'demo', 'h', 'p', 'live', 't', 'main', 2, 0, 3, 'none', 0, 1, 5, 6), "
    "('u', 'demo', 'h', 'q', 'live', 'v', 'main', 1, 0, 3, 'both', 0, 1, 5, 6)",
    "INSERT INTO trial_plan VALUES " + ", ".join(f"('{who}', {n}, 'main', 'm{n}', 'a', '{{\"at\": {n % 2}}}', 'z')"
                                                 for who in "us" for n in range(3)),
    "INSERT INTO event VALUES ('e1', 's', 0, 'answered', 1.5, 7, '{}'), ('e2', 's', 0, 'blur', 1.0, 7, '{\"x\": 1}'), "
    "('e3', 'u', NULL, 'clock', NULL, 8, '{}'), ('e4', 'u', 0, 'answered', 2.5, 8, '{}'), "
    "('e5', 's', 1, 'answered', 3.5, 9, '{}')",
)  # fmt: skip
EVENTS = "SELECT session_id, trial_index, kind, t_client_ms, received_at, payload_json FROM event ORDER BY 1, 2, 3"


def chain() -> list[dict[str, Any]]:
    """Three responses of two sessions, hashed as every version does: SHA-256 of the columns as sorted JSON."""
    rows: list[dict[str, Any]] = []
    for seq, (who, index, at) in enumerate((("s", 0, 7), ("u", 0, 8), ("s", 1, 9)), 1):
        row = {
            "session_id": who, "trial_index": index, "attempt_id": f"a{seq}", "choice": "a", "side": "left",
            "input": "key", "rt_ms": 500.25, "onset_ms": None, "event_ms": seq + 0.5, "handler_ms": None,
            "time_origin_ms": None, "frame_hz": None, "n_exposures": 1, "resumed": 0, "blur_ms": 0.0,
            "shown_sha256": "z", "received_at": at, "seq": seq, "prev_hash": rows[-1]["row_hash"] if rows else "0" * 64,
            "confidence": 0.5 if seq == 3 else None,
        }  # fmt: skip
        hashed = {key: value for key, value in row.items() if (key, value) != ("confidence", None)}
        rows.append({**row, "row_hash": hashlib.sha256(canonical(hashed)).hexdigest()})
    return rows


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.skipif(not FOUND, reason="none here"))])
def url(request: pytest.FixtureRequest, tmp_path: Any) -> str:
    """A database at version 4 with two participants."""
    if request.param == "postgresql":
        server: Postgresql = request.getfixturevalue("postgresql")
        place = server.database()
    else:
        place = f"sqlite:///{tmp_path / 'test.db'}"
    made = engine.create_write_engine(place)
    migrate(made, {request.param: MIGRATIONS[request.param][:4]})
    with made.begin() as db:
        for statement in VERSION_4:
            db.exec_driver_sql(statement)
        for row in chain():
            names = ", ".join(row)
            db.execute(text(f"INSERT INTO response({names}) VALUES (:{names.replace(', ', ', :')})"), row)
    made.dispose()
    return place


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = Store(url)
    yield opened
    opened.close()


def test_everything_recorded_is_there_and_the_chain_holds(url: str) -> None:
    """Catches a row lost or a number rounded while a table is replaced, and an event told twice or not at all."""
    made = engine.create_write_engine(url)
    with made.begin() as db:
        events = sorted(map(tuple, db.exec_driver_sql(EVENTS)), key=repr)
    made.dispose()
    store = Store(url)
    assert store.read(lambda db: list(responses.find_broken_links(db))) == []
    kept = store.read(lambda db: [row for who in "su" for row in responses.of_session(db, who)])
    expected = [{**row, "dropped_frames": None, "clock_ms": None, "place": None, "text": None} for row in chain()]
    assert sorted(kept, key=lambda row: row["seq"]) == expected
    assert sorted(store.read(lambda db: list(map(tuple, db.exec_driver_sql(EVENTS)))), key=repr) == events
    plans = store.read(lambda db: [row for who in "su" for row in repository.list_planned_trials(db, who, 0, 9)])
    assert [(row["session_id"], row["item_id"], row["screen_json"]) for row in plans] == [
        (who, f"m{n}", f'{{"at": {n % 2}}}') for who in "su" for n in range(3)
    ]
    assert store.read(lambda db: db.exec_driver_sql("SELECT count(*) FROM screen").scalar()) == 2
    assert store.read(lambda db: repository.event_counts(db, "u")) == {"clock": 1}
    store.close()


def test_the_rules_are_what_they_were(store: Store) -> None:
    """A replaced table loses its triggers, and one response for a trial is now a rule and no key."""
    for table in ("response", "page_event", "trial_plan", "screen"):
        column = "screen_json" if table == "screen" else "session_id"
        for change in (f"DELETE FROM {table}", f"UPDATE {table} SET {column} = 'x'"):
            with pytest.raises(StoreError, match="append-only"):
                store.write(lambda db, c=change: db.exec_driver_sql(c))
    last = {**chain()[-1], "seq": 4, "attempt_id": "another", "prev_hash": chain()[-1]["row_hash"]}
    for wrong in (last, {**last, "trial_index": 2, "seq": 3}, {**last, "trial_index": 9}):
        with pytest.raises(StoreError, match=r"(?i)unique|foreign key"):
            store.write(lambda db, row=wrong: db.execute(responses._INSERT, row))


def test_a_participant_goes_on_and_may_withdraw(store: Store) -> None:
    """The next response takes the next place of the chain; a withdrawal erases events and responses of its session."""
    sent = {key: value for key, value in chain()[0].items() if key not in ("seq", "prev_hash", "row_hash")}
    store.write(lambda db: responses.append(db, {**sent, "trial_index": 2, "attempt_id": "new"}))

    def leave(db: Any) -> None:
        repository.add_withdrawal(db, "s", 10)
        responses.erase(db, "s")
        subject.erase_rest(db, "s")

    store.erase(leave)
    assert store.read(lambda db: list(responses.find_broken_links(db))) == []
    assert {row[0] for row in store.read(lambda db: list(db.exec_driver_sql(EVENTS)))} == {"u"}
    assert store.read(lambda db: [len(responses.hashes_of(db, who)) for who in "su"]) == [3, 1]
