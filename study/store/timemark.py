"""How far time had come: a clock that jumps ends and erases nothing until it is known to be right.

A server that runs moves the mark on with its clock. Where the clock is more than an hour away from it (the machine was
off, or its clock is wrong), the mark is what counts. The new time is taken over by a researcher's word, or when
participants have responded under it for ten minutes.
"""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from study.store.rows import at_most_one
from study.store.tables import response, session, time_mark
from study.store.upsert import insert_or

FURTHEST_NS = 3600 * 10**9
"""A clock that is further from the mark has jumped."""
LIVED_NS = 600 * 10**9
"""For so long participants must have responded under the new time."""
STEP_NS = 60 * 10**9
"""The mark is not written more often: it needs no disk for every response."""


def compute_trusted_time(db: Connection, now: int) -> int:
    """The time by which participations end and ids are erased: `now`, or the mark while the clock has jumped."""
    row = at_most_one(db, select(time_mark))
    reached = _evidence(db, now) if row is None else int(row["reached"])
    if abs(now - reached) <= FURTHEST_NS:
        if row is None or now - reached >= STEP_NS or row["since"] is not None:
            _write(db, max(now, reached))
        return now
    since, latest = (int(row["since"]), int(row["latest"])) if row is not None and row["since"] else (now + 1, now)
    if now < since or now - latest > FURTHEST_NS:
        _write(db, reached, now, now)  # another jump: the new time begins here
    elif _last_response(db) - since >= LIVED_NS and now > reached:
        _write(db, now)
        return now
    elif now - latest >= STEP_NS:
        _write(db, reached, since, now)
    return reached


def jump(db: Connection, now: int) -> int:
    """By how much the clock is away from the mark (ns), where that is more than an hour; else 0. Reads only."""
    row = at_most_one(db, select(time_mark))
    reached = _evidence(db, now) if row is None else int(row["reached"])
    return now - reached if abs(now - reached) > FURTHEST_NS else 0


def confirm(db: Connection, now: int) -> None:
    """Take the clock's time as right."""
    _write(db, now)


def _write(db: Connection, reached: int, since: int | None = None, latest: int | None = None) -> None:
    row = {"id": 1, "reached": reached, "since": since, "latest": latest}
    db.execute(insert_or(db, time_mark).values(row).on_conflict_do_update(index_elements=["id"], set_=row))


def _evidence(db: Connection, now: int) -> int:
    """How far time had come in a database that has no mark yet; an empty one knows nothing else than the clock."""
    seen = db.execute(select(func.max(session.c.last_seen))).scalar_one()
    return now if seen is None else int(seen)


def _last_response(db: Connection) -> int:
    last = select(response.c.received_at).order_by(response.c.seq.desc()).limit(1)
    return int(db.execute(last).scalar_one_or_none() or 0)
