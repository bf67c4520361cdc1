"""Schema version 9: a response is one of up to nine options, whose buttons are numbered where there are more than two.

SQLite changes the rule of a column only by replacing its table. Responses keep their order, bytes and hashes.
"""

from __future__ import annotations

from study.store.migrations.v0005_fewer_pages import _RESPONSE, _VIEW, _guards

_CHOICES = "choice IN ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i')"
_SIDES = "side IN ('left', 'right', '1', '2', '3', '4', '5', '6', '7', '8', '9')"

STATEMENTS = (
    "DROP VIEW event",
    f"""
CREATE TABLE new_response(
  seq INTEGER PRIMARY KEY, session_id TEXT NOT NULL, trial_index INTEGER NOT NULL, attempt_id TEXT NOT NULL,
  choice TEXT NOT NULL CHECK({_CHOICES}), side TEXT NOT NULL CHECK({_SIDES}),
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
    _VIEW,
)

POSTGRESQL = (
    "ALTER TABLE response DROP CONSTRAINT response_choice_check",
    "ALTER TABLE response DROP CONSTRAINT response_side_check",
    f"ALTER TABLE response ADD CONSTRAINT response_choice_check CHECK ({_CHOICES})",
    f"ALTER TABLE response ADD CONSTRAINT response_side_check CHECK ({_SIDES})",
)
"""PostgreSQL changes the rules in place."""
