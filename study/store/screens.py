"""The contents of participants' screens, each stored once however many participants see it."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, insert, select

from study.store.rows import every
from study.store.tables import screen

# Built once: SQLAlchemy would take longer to build it than the database to run it.
_NUMBERS = select(screen.c.screen_json, screen.c.screen_id).where(
    screen.c.screen_json.in_(bindparam("contents", expanding=True))
)


def keep_screens(db: Connection, contents: set[str]) -> dict[str, int]:
    """Store the screens that are new; return the number of each."""
    known = _numbers(db, contents)
    new = [{"screen_json": content} for content in sorted(contents - set(known))]
    if not new:
        return known
    db.execute(insert(screen), new)
    return _numbers(db, contents)


def _numbers(db: Connection, contents: set[str]) -> dict[str, int]:
    return {row["screen_json"]: int(row["screen_id"]) for row in every(db, _NUMBERS, {"contents": sorted(contents)})}
