"""Schema version 7: a check value of the workspace's key, by which a lost or foreign key is recognised."""

from __future__ import annotations

from study.store.migrations.translation import translate

STATEMENTS = (
    """
CREATE TABLE key_check(id INTEGER PRIMARY KEY CHECK(id = 1), value TEXT NOT NULL) STRICT""",
)

POSTGRESQL = translate(STATEMENTS)
