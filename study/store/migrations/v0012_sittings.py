"""Schema version 12: several sittings of a participant, between which they are at the stage ``between``.

Each sitting has a row: after which trial it ends, and when it was started and ended; studies of one sitting have none.
The hash of the personal link by which participants return is in ``session``. SQLite changes the rule of a column only
by replacing its table; every row stays as it is.
"""

from __future__ import annotations

from study.store.migrations.translation import translate

_STAGES = (
    "stage IN ('consent', 'instructions', 'check', 'example', 'practice', 'main', 'between', 'questionnaire', "
    "'debrief', 'done', 'declined', 'screened', 'full', 'expired', 'withdrawn')"
)
_COLUMNS = (
    "session_id, study, study_hash, participant_id, mode, token_hash, stage, position, practice, main, condition, "
    "side_flip, order_seed, n_resumes, started_at, last_seen, agreed_at, completed_at, completion_code, tab_id, "
    "tab_until, over_quota, env_json, browser_hash, code_hash, origin"
)
_ADDED = (
    "CREATE UNIQUE INDEX session_link ON session(link_hash)",
    """
CREATE TABLE sitting(
  session_id TEXT NOT NULL REFERENCES session, number INTEGER NOT NULL CHECK(number >= 1), ends INTEGER NOT NULL,
  started_at INTEGER, ended_at INTEGER, PRIMARY KEY(session_id, number)) STRICT, WITHOUT ROWID""",
)
STATEMENTS = (
    f"""
CREATE TABLE new_session(
  session_id TEXT PRIMARY KEY, study TEXT NOT NULL, study_hash TEXT NOT NULL REFERENCES study_version,
  participant_id TEXT NOT NULL, mode TEXT NOT NULL CHECK(mode IN ('live', 'preview', 'sim')),
  token_hash TEXT NOT NULL UNIQUE,
  stage TEXT NOT NULL CHECK({_STAGES}),
  position INTEGER NOT NULL DEFAULT 0 CHECK(position BETWEEN 0 AND practice + main),
  practice INTEGER NOT NULL, main INTEGER NOT NULL,
  condition TEXT, side_flip INTEGER CHECK(side_flip IN (0, 1)), order_seed INTEGER,
  n_resumes INTEGER NOT NULL DEFAULT 0, started_at INTEGER NOT NULL, last_seen INTEGER NOT NULL,
  agreed_at INTEGER, completed_at INTEGER, completion_code TEXT UNIQUE,
  tab_id TEXT, tab_until INTEGER, over_quota INTEGER NOT NULL DEFAULT 0 CHECK(over_quota IN (0, 1)), env_json TEXT,
  browser_hash TEXT, code_hash TEXT, origin TEXT, link_hash TEXT,
  UNIQUE(study, mode, participant_id)) STRICT""",
    f"INSERT INTO new_session({_COLUMNS}) SELECT {_COLUMNS} FROM session",
    "DROP TABLE session",
    "ALTER TABLE new_session RENAME TO session",
    "CREATE UNIQUE INDEX session_code ON session(code_hash)",
    *_ADDED,
)
POSTGRESQL = (
    "ALTER TABLE session DROP CONSTRAINT session_stage_check",
    f"ALTER TABLE session ADD CONSTRAINT session_stage_check CHECK({_STAGES})",
    "ALTER TABLE session ADD COLUMN link_hash TEXT",
    *translate(_ADDED),
)
"""PostgreSQL changes the rule in place."""
