"""Schema version 1. Never edited once released: a change is a new migration.

Times are nanoseconds since 1970 (UTC) on the server's clock; client times are milliseconds.
The primary key of ``response`` is the exactly-once guarantee; ``attempt_id`` tells a retry from a second response.
"""

from __future__ import annotations

from study.store.migrations.translation import guards, translate

_APPEND_ONLY = ("response", "response_conflict", "event", "trial_plan", "consent")

_TABLES = (
    """
CREATE TABLE study_version(
  study_hash TEXT PRIMARY KEY, name TEXT NOT NULL, folder TEXT NOT NULL, opened_at INTEGER NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('open', 'superseded', 'closed'))) STRICT""",
    "CREATE UNIQUE INDEX one_open_version ON study_version(name) WHERE state = 'open'",
    """
CREATE TABLE session(
  session_id TEXT PRIMARY KEY, study TEXT NOT NULL, study_hash TEXT NOT NULL REFERENCES study_version,
  participant_id TEXT NOT NULL, mode TEXT NOT NULL CHECK(mode IN ('live', 'preview', 'sim')),
  token_hash TEXT NOT NULL UNIQUE,
  stage TEXT NOT NULL CHECK(stage IN
    ('consent', 'instructions', 'practice', 'main', 'debrief', 'done', 'declined', 'full')),
  position INTEGER NOT NULL DEFAULT 0 CHECK(position BETWEEN 0 AND practice + main),
  practice INTEGER NOT NULL, main INTEGER NOT NULL,
  condition TEXT, side_flip INTEGER CHECK(side_flip IN (0, 1)), order_seed INTEGER,
  n_resumes INTEGER NOT NULL DEFAULT 0, started_at INTEGER NOT NULL, last_seen INTEGER NOT NULL,
  completed_at INTEGER, completion_code TEXT UNIQUE,
  UNIQUE(study, mode, participant_id)) STRICT""",
    """
CREATE TABLE allocation_slot(
  slot_id INTEGER PRIMARY KEY, study_hash TEXT NOT NULL REFERENCES study_version,
  mode TEXT NOT NULL CHECK(mode IN ('live', 'sim')), block INTEGER NOT NULL, condition TEXT NOT NULL,
  side_flip INTEGER NOT NULL CHECK(side_flip IN (0, 1)), order_seed INTEGER NOT NULL,
  state TEXT NOT NULL DEFAULT 'open' CHECK(state IN ('open', 'held', 'done')),
  session_id TEXT UNIQUE REFERENCES session, held_until INTEGER,
  CHECK((state = 'open') = (session_id IS NULL)),
  UNIQUE(study_hash, mode, block, condition)) STRICT""",
    "CREATE INDEX next_slot ON allocation_slot(study_hash, mode, state, slot_id)",
    """
CREATE TABLE consent(
  session_id TEXT PRIMARY KEY REFERENCES session, text_sha256 TEXT NOT NULL, lang TEXT NOT NULL,
  agreed INTEGER NOT NULL CHECK(agreed IN (0, 1)), at INTEGER NOT NULL) STRICT""",
    """
CREATE TABLE trial_plan(
  session_id TEXT NOT NULL REFERENCES session, trial_index INTEGER NOT NULL,
  phase TEXT NOT NULL CHECK(phase IN ('practice', 'main')), item_id TEXT NOT NULL,
  left_is TEXT NOT NULL CHECK(left_is IN ('a', 'b')), screen_json TEXT NOT NULL, shown_sha256 TEXT NOT NULL,
  PRIMARY KEY(session_id, trial_index)) STRICT, WITHOUT ROWID""",
    """
CREATE TABLE response(
  session_id TEXT NOT NULL, trial_index INTEGER NOT NULL, attempt_id TEXT NOT NULL UNIQUE,
  choice TEXT NOT NULL CHECK(choice IN ('a', 'b')), side TEXT NOT NULL CHECK(side IN ('left', 'right')),
  input TEXT NOT NULL CHECK(input IN ('key', 'mouse', 'touch', 'sim')),
  rt_ms REAL NOT NULL CHECK(rt_ms >= 0), onset_ms REAL, event_ms REAL, handler_ms REAL, time_origin_ms REAL,
  frame_hz REAL, n_exposures INTEGER NOT NULL CHECK(n_exposures >= 1),
  resumed INTEGER NOT NULL CHECK(resumed IN (0, 1)), blur_ms REAL NOT NULL CHECK(blur_ms >= 0),
  shown_sha256 TEXT NOT NULL, received_at INTEGER NOT NULL,
  seq INTEGER NOT NULL UNIQUE, prev_hash TEXT NOT NULL, row_hash TEXT NOT NULL UNIQUE,
  PRIMARY KEY(session_id, trial_index),
  FOREIGN KEY(session_id, trial_index) REFERENCES trial_plan) STRICT, WITHOUT ROWID""",
    """
CREATE TABLE response_conflict(
  conflict_id INTEGER PRIMARY KEY, session_id TEXT NOT NULL REFERENCES session, trial_index INTEGER NOT NULL,
  attempt_id TEXT NOT NULL, payload_json TEXT NOT NULL, reason TEXT NOT NULL, received_at INTEGER NOT NULL,
  UNIQUE(session_id, trial_index, attempt_id)) STRICT""",
    """
CREATE TABLE event(
  event_id TEXT PRIMARY KEY, session_id TEXT NOT NULL REFERENCES session, trial_index INTEGER, kind TEXT NOT NULL,
  t_client_ms REAL, received_at INTEGER NOT NULL, payload_json TEXT NOT NULL) STRICT, WITHOUT ROWID""",
    "CREATE INDEX event_of_session ON event(session_id, received_at)",
)

_TRIGGERS = tuple(
    f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
    f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    for table in _APPEND_ONLY
    for verb in ("UPDATE", "DELETE")
)

STATEMENTS = _TABLES + _TRIGGERS

# A message in two parts: a per cent sign would be taken for a parameter.
_REFUSAL = "RAISE EXCEPTION USING MESSAGE = TG_TABLE_NAME || ' is append-only'"

POSTGRESQL = (
    *translate(_TABLES),
    f"CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {_REFUSAL}; END $$",
    *(made for table in _APPEND_ONLY for verb in ("UPDATE", "DELETE") for made in guards(table, verb, "append_only")),
)
