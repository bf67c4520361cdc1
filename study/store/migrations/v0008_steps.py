"""Schema version 8: responses to a trial before its last one, in a table with the columns of ``response``."""

from __future__ import annotations

from study.store.migrations.translation import guards, translate

_TABLE = (
    """
CREATE TABLE earlier_response(
  seq INTEGER PRIMARY KEY, session_id TEXT NOT NULL, trial_index INTEGER NOT NULL,
  step INTEGER NOT NULL CHECK(step >= 1), attempt_id TEXT NOT NULL,
  choice TEXT NOT NULL CHECK(choice IN ('a', 'b')), side TEXT NOT NULL CHECK(side IN ('left', 'right')),
  input TEXT NOT NULL CHECK(input IN ('key', 'mouse', 'touch', 'sim')),
  rt_ms REAL NOT NULL CHECK(rt_ms >= 0), onset_ms REAL, event_ms REAL, handler_ms REAL, time_origin_ms REAL,
  frame_hz REAL, n_exposures INTEGER NOT NULL CHECK(n_exposures >= 1),
  resumed INTEGER NOT NULL CHECK(resumed IN (0, 1)), blur_ms REAL NOT NULL CHECK(blur_ms >= 0),
  shown_sha256 TEXT NOT NULL, received_at INTEGER NOT NULL, prev_hash TEXT NOT NULL, row_hash TEXT NOT NULL,
  confidence REAL CHECK(confidence BETWEEN 0 AND 1), dropped_frames INTEGER, clock_ms REAL,
  UNIQUE(session_id, trial_index, step),
  FOREIGN KEY(session_id, trial_index) REFERENCES trial_plan) STRICT""",
)
_WITHDRAWN = " WHEN NOT EXISTS (SELECT 1 FROM withdrawal w WHERE w.session_id = OLD.session_id)"

STATEMENTS = (
    *_TABLE,
    *(
        f"CREATE TRIGGER earlier_response_no_{verb.lower()} BEFORE {verb} ON earlier_response{unless} "
        "BEGIN SELECT RAISE(ABORT, 'earlier_response is append-only'); END"
        for verb, unless in (("UPDATE", ""), ("DELETE", _WITHDRAWN))
    ),
)

POSTGRESQL = (
    *translate(_TABLE),
    *guards("earlier_response", "UPDATE", "append_only"),
    *guards("earlier_response", "DELETE", "erasable"),
)
