"""Schema version 3: a collection may be paused."""

from __future__ import annotations

from study.store.migrations.translation import translate

STATEMENTS = ("ALTER TABLE study_version ADD COLUMN paused INTEGER NOT NULL DEFAULT 0 CHECK(paused IN (0, 1))",)

POSTGRESQL = translate(STATEMENTS)
