"""Schema version 4: access modes, exclusions, and the time mark.

Browsers' secrets, private codes and addresses are stored as keyed or plain hashes. New columns of ``session`` are
empty for participants of earlier versions.
"""

from __future__ import annotations

from study.store.migrations.translation import translate

STATEMENTS = (
    "ALTER TABLE session ADD COLUMN browser_hash TEXT",
    "ALTER TABLE session ADD COLUMN code_hash TEXT",
    "ALTER TABLE session ADD COLUMN origin TEXT",
    "CREATE UNIQUE INDEX session_code ON session(code_hash)",
    "ALTER TABLE study_version ADD COLUMN access TEXT NOT NULL DEFAULT 'open' "
    "CHECK(access IN ('open', 'list', 'personal'))",
    """
CREATE TABLE invitation(
  study TEXT NOT NULL, participant_id TEXT NOT NULL, PRIMARY KEY(study, participant_id)) STRICT, WITHOUT ROWID""",
    """
CREATE TABLE exclusion(
  session_id TEXT PRIMARY KEY REFERENCES session, reason TEXT NOT NULL, at INTEGER NOT NULL) STRICT""",
    """
CREATE TABLE time_mark(
  id INTEGER PRIMARY KEY CHECK(id = 1), reached INTEGER NOT NULL, since INTEGER, latest INTEGER) STRICT""",
)

POSTGRESQL = translate(STATEMENTS)
