"""Schema version 6: the members of a study and the role of each. Studies of earlier versions have none."""

from __future__ import annotations

from study.store.migrations.translation import translate

STATEMENTS = (
    """
CREATE TABLE study_member(
  study TEXT NOT NULL, account TEXT NOT NULL,
  role TEXT NOT NULL CHECK(role IN ('owner', 'editor', 'viewer', 'manager')),
  added_at INTEGER NOT NULL, added_by TEXT NOT NULL, PRIMARY KEY(study, account)) STRICT, WITHOUT ROWID""",
)

POSTGRESQL = translate(STATEMENTS)
