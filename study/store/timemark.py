"""A time mark: after a clock jump, nothing expires and nothing is erased until the new time is confirmed.

A running server advances the mark with its clock. If the clock is more than an hour away from it (the machine was
off, or its clock is wrong), the mark counts. The new time is accepted when a researcher confirms it, or when
participants have responded under it for ten minutes.
"""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from study.store.rows import at_most_one
from study.store.tables import response, session, time_mark
from study.store.upsert import insert_or

FURTHEST_NS = 3600 * 10**9
"""A clock farther than this from the mark has jumped."""
LIVED_NS = 600 * 10**9
"""Time for which participants must have responded under the new time."""
STEP_NS = 60 * 10**9
"""Shortest time between two writes of the mark, which need not be saved at every response."""

_MARK = select(time_mark)


def compute_trusted_time(db: Connection, now: int) -> int:
    """Compute the time that counts for expiry and erasure: `now`, or the mark while the clock has jumped."""
    row = at_most_one(db, _MARK)
    reached = _evidence(db, now) if row is None else int(row["reached"])
    if abs(now - reached) <= FURTHEST_NS:
        if row is None or now - reached >= STEP_NS or row["since"] is not None:
            _write(db, max(now, reached))
        return now
    since, latest = (int(row["since"]), int(row["latest"])) if row is not None and row["since"] else (now + 1, now)
    if now < since or now - latest > FURTHEST_NS:
        _write(db, reached, now, now)  # another jump: the evidence for a new time starts here
    elif _last_response(db) - since >= LIVED_NS and now > reached:
        _write(db, now)
        return now
    elif now - latest >= STEP_NS:
        _write(db, reached, since, now)
    return reached


def measure_clock_jump(db: Connection, now: int) -> int:
    """Measure how far the clock is from the mark (ns); 0 within an hour. Reads only."""
    row = at_most_one(db, _MARK)
    reached = _evidence(db, now) if row is None else int(row["reached"])
    return now - reached if abs(now - reached) > FURTHEST_NS else 0


def confirm(db: Connection, now: int) -> None:
    """Accept the clock's time as right."""
    _write(db, now)


def _write(db: Connection, reached: int, since: int | None = None, latest: int | None = None) -> None:
    row = {"id": 1, "reached": reached, "since": since, "latest": latest}
    db.execute(insert_or(db, time_mark).values(row).on_conflict_do_update(index_elements=["id"], set_=row))


def _evidence(db: Connection, now: int) -> int:
    """Find the newest time recorded in a database without a mark; in an empty one, use the clock."""
    seen = db.execute(select(func.max(session.c.last_seen))).scalar_one()
    return now if seen is None else int(seen)


def _last_response(db: Connection) -> int:
    last = select(response.c.received_at).order_by(response.c.seq.desc()).limit(1)
    return int(db.execute(last).scalar_one_or_none() or 0)
