"""Schema version 11: a response may be a text, which two raters code; rater is a role.

SQLite changes the rule of a column only by replacing its table. Codes are kept with each change of mind.
"""

from __future__ import annotations

from study.store.migrations.translation import translate

_ROLES = "role IN ('owner', 'editor', 'viewer', 'manager', 'rater')"
_ADDED = (
    "ALTER TABLE response ADD COLUMN text TEXT CHECK(length(text) BETWEEN 1 AND 200)",
    "ALTER TABLE earlier_response ADD COLUMN text TEXT CHECK(length(text) BETWEEN 1 AND 200)",
    """
CREATE TABLE response_code(
  session_id TEXT NOT NULL REFERENCES session, trial_index INTEGER NOT NULL, rater TEXT NOT NULL,
  revision INTEGER NOT NULL CHECK(revision >= 1), code TEXT NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY(session_id, trial_index, rater, revision)) STRICT, WITHOUT ROWID""",
)
STATEMENTS = (
    *_ADDED,
    f"""
CREATE TABLE new_study_member(
  study TEXT NOT NULL, account TEXT NOT NULL,
  role TEXT NOT NULL CHECK({_ROLES}),
  added_at INTEGER NOT NULL, added_by TEXT NOT NULL, PRIMARY KEY(study, account)) STRICT, WITHOUT ROWID""",
    "INSERT INTO new_study_member SELECT study, account, role, added_at, added_by FROM study_member",
    "DROP TABLE study_member",
    "ALTER TABLE new_study_member RENAME TO study_member",
)
POSTGRESQL = (
    *translate(_ADDED),
    "ALTER TABLE study_member DROP CONSTRAINT study_member_role_check",
    f"ALTER TABLE study_member ADD CONSTRAINT study_member_role_check CHECK ({_ROLES})",
)
"""PostgreSQL changes the rule in place."""
