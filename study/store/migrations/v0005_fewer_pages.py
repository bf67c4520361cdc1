"""Schema version 5: a response changes fewer pages of the database, and each change writes a whole page.

Rows of ``response`` are longer than a quarter of a page. SQLite puts such a row of a table WITHOUT ROWID on an overflow
page of its own, and random keys spread the rest over pages that no other row changes. Now responses are appended:
``seq`` is the key, and that a trial has one response is the rule (session_id, trial_index). Row hashes need no index:
the chain orders them. That an attempt id serves one trial of its session is checked in the writer's
transaction.

Events of the page are in ``page_event``, ordered by session. The time of a response is in ``response`` alone;
the view ``event`` shows both. A screen that many participants see is stored once, in ``screen``.
"""

from __future__ import annotations

from study.store.migrations.translation import guards, translate

_WITHDRAWN = " WHEN NOT EXISTS (SELECT 1 FROM withdrawal w WHERE w.session_id = OLD.session_id)"


def _guards(table: str, unless: str = _WITHDRAWN) -> tuple[str, ...]:
    """Make the triggers again that dropping a table removes."""
    return tuple(
        f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table}{allowed} "
        f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        for verb, allowed in (("UPDATE", ""), ("DELETE", unless))
    )


_SCREENS = (
    "CREATE TABLE screen(screen_id INTEGER PRIMARY KEY, screen_json TEXT NOT NULL) STRICT",
    "INSERT INTO screen(screen_json) SELECT DISTINCT screen_json FROM trial_plan",
)
_SCREEN_OF = "(SELECT s.screen_id FROM screen s WHERE s.screen_json = p.screen_json)"
_RESPONSE = (
    "seq, session_id, trial_index, attempt_id, choice, side, input, rt_ms, onset_ms, event_ms, handler_ms, "
    "time_origin_ms, frame_hz, n_exposures, resumed, blur_ms, shown_sha256, received_at, prev_hash, row_hash, "
    "confidence, dropped_frames, clock_ms"
)
_EVENT = "event_id, session_id, trial_index, kind, t_client_ms, received_at, payload_json"
_NOT_REPEATED = "kind <> 'answered'"
_VIEW = f"""
CREATE VIEW event({_EVENT}) AS SELECT {_EVENT} FROM page_event UNION ALL
SELECT attempt_id, session_id, trial_index, 'answered', event_ms, received_at, '{{}}' FROM response"""

STATEMENTS = (
    *_SCREENS,
    "CREATE INDEX screen_by_content ON screen(screen_json)",
    *_guards("screen", ""),
    """
CREATE TABLE new_trial_plan(
  session_id TEXT NOT NULL REFERENCES session, trial_index INTEGER NOT NULL,
  phase TEXT NOT NULL CHECK(phase IN ('practice', 'main', 'catch')), item_id TEXT NOT NULL,
  left_is TEXT NOT NULL CHECK(left_is IN ('a', 'b')), screen_id INTEGER NOT NULL REFERENCES screen,
  shown_sha256 TEXT NOT NULL, PRIMARY KEY(session_id, trial_index)) STRICT, WITHOUT ROWID""",
    f"""
INSERT INTO new_trial_plan(session_id, trial_index, phase, item_id, left_is, screen_id, shown_sha256)
SELECT session_id, trial_index, phase, item_id, left_is, {_SCREEN_OF}, shown_sha256 FROM trial_plan p""",
    "DROP TABLE trial_plan",
    "ALTER TABLE new_trial_plan RENAME TO trial_plan",
    *_guards("trial_plan"),
    """
CREATE TABLE new_response(
  seq INTEGER PRIMARY KEY, session_id TEXT NOT NULL, trial_index INTEGER NOT NULL, attempt_id TEXT NOT NULL,
  choice TEXT NOT NULL CHECK(choice IN ('a', 'b')), side TEXT NOT NULL CHECK(side IN ('left', 'right')),
  input TEXT NOT NULL CHECK(input IN ('key', 'mouse', 'touch', 'sim')),
  rt_ms REAL NOT NULL CHECK(rt_ms >= 0), onset_ms REAL, event_ms REAL, handler_ms REAL, time_origin_ms REAL,
  frame_hz REAL, n_exposures INTEGER NOT NULL CHECK(n_exposures >= 1),
  resumed INTEGER NOT NULL CHECK(resumed IN (0, 1)), blur_ms REAL NOT NULL CHECK(blur_ms >= 0),
  shown_sha256 TEXT NOT NULL, received_at INTEGER NOT NULL, prev_hash TEXT NOT NULL, row_hash TEXT NOT NULL,
  confidence REAL CHECK(confidence BETWEEN 0 AND 1), dropped_frames INTEGER, clock_ms REAL,
  UNIQUE(session_id, trial_index),
  FOREIGN KEY(session_id, trial_index) REFERENCES trial_plan) STRICT""",
    f"INSERT INTO new_response({_RESPONSE}) SELECT {_RESPONSE} FROM response ORDER BY seq",
    "DROP TABLE response",
    "ALTER TABLE new_response RENAME TO response",
    *_guards("response"),
    """
CREATE TABLE page_event(
  event_id TEXT NOT NULL, session_id TEXT NOT NULL REFERENCES session, trial_index INTEGER, kind TEXT NOT NULL,
  t_client_ms REAL, received_at INTEGER NOT NULL, payload_json TEXT NOT NULL,
  PRIMARY KEY(session_id, event_id)) STRICT, WITHOUT ROWID""",
    f"INSERT INTO page_event({_EVENT}) SELECT {_EVENT} FROM event WHERE {_NOT_REPEATED}",
    "DROP TABLE event",
    *_guards("page_event"),
    _VIEW,
)

POSTGRESQL = (
    *translate(_SCREENS),
    "CREATE INDEX screen_by_content ON screen USING hash (screen_json)",
    *(made for verb in ("UPDATE", "DELETE") for made in guards("screen", verb, "append_only")),
    "ALTER TABLE trial_plan ADD COLUMN screen_id BIGINT REFERENCES screen",
    "ALTER TABLE trial_plan DISABLE TRIGGER trial_plan_no_update",
    f"UPDATE trial_plan p SET screen_id = {_SCREEN_OF}",
    "ALTER TABLE trial_plan ENABLE TRIGGER trial_plan_no_update",
    "ALTER TABLE trial_plan ALTER COLUMN screen_id SET NOT NULL",
    "ALTER TABLE trial_plan DROP COLUMN screen_json",
    "ALTER TABLE response DROP CONSTRAINT response_pkey",
    "ALTER TABLE response DROP CONSTRAINT response_seq_key",
    "ALTER TABLE response DROP CONSTRAINT response_attempt_id_key",
    "ALTER TABLE response DROP CONSTRAINT response_row_hash_key",
    "ALTER TABLE response ADD PRIMARY KEY (seq)",
    "ALTER TABLE response ADD UNIQUE (session_id, trial_index)",
    "ALTER TABLE event RENAME TO page_event",
    "ALTER TABLE page_event DISABLE TRIGGER event_no_delete",
    f"DELETE FROM page_event WHERE NOT ({_NOT_REPEATED})",
    "ALTER TABLE page_event ENABLE TRIGGER event_no_delete",
    "ALTER TABLE page_event DROP CONSTRAINT event_pkey",
    "DROP INDEX event_of_session",
    "ALTER TABLE page_event ADD PRIMARY KEY (session_id, event_id)",
    _VIEW,
)
"""PostgreSQL changes keys in place, and stores rows in the order of arrival."""
