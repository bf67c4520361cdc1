"""Schema version 10: a response may be a place on the image, stored with it as text (`study.places.marks`)."""

from __future__ import annotations

from study.store.migrations.translation import translate

STATEMENTS = (
    "ALTER TABLE response ADD COLUMN place TEXT CHECK(length(place) <= 512)",
    "ALTER TABLE earlier_response ADD COLUMN place TEXT CHECK(length(place) <= 512)",
)
POSTGRESQL = translate(STATEMENTS)
