"""The contents of participants' screens, each stored once however many participants see it."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select

from study.store.rows import every
from study.store.tables import screen


def keep_screens(db: Connection, contents: set[str]) -> dict[str, int]:
    """Store the screens that are new; return the number of each."""
    known = _numbers(db, contents)
    new = [{"screen_json": content} for content in sorted(contents - set(known))]
    if not new:
        return known
    db.execute(insert(screen), new)
    return _numbers(db, contents)


def _numbers(db: Connection, contents: set[str]) -> dict[str, int]:
    wanted = select(screen.c.screen_json, screen.c.screen_id).where(screen.c.screen_json.in_(contents))
    return {row["screen_json"]: int(row["screen_id"]) for row in every(db, wanted)}
