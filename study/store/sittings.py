"""Queries on the sittings of participants: a row each, in studies with several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlalchemy import Connection, and_, bindparam, insert, select, update

from study.store.rows import SessionRow, SittingRow, at_most_one, every
from study.store.tables import allocation_slot, session, sitting

# Built once, as every request of a study with several sittings reads them.
_OF_SESSION = select(sitting).where(sitting.c.session_id == bindparam("session")).order_by(sitting.c.number)
_TOOK = (sitting.c.ended_at - sitting.c.started_at).label("took")


def add(db: Connection, session_id: str, ends: Sequence[int], started_at: int) -> None:
    """Add the sittings of a participant, now in the first; ``ends`` are the indices after the last trial of each."""
    rows = [
        {"session_id": session_id, "number": number, "ends": end, "started_at": started_at if number == 1 else None}
        for number, end in enumerate(ends, 1)
    ]
    if rows:
        db.execute(insert(sitting), rows)


def list_sittings(db: Connection, session_id: str) -> list[SittingRow]:
    """List the sittings of a participant in their order; none before the allocation, nor of a study of one."""
    return cast(list[SittingRow], every(db, _OF_SESSION, {"session": session_id}))


def list_by_session(db: Connection, study: str) -> dict[str, list[SittingRow]]:
    """List the sittings of a study's real participants, by session; none of a study with one sitting."""
    joined = select(sitting).join(session, session.c.session_id == sitting.c.session_id)
    query = joined.where(session.c.study == study, session.c.mode == "live")
    listed: dict[str, list[SittingRow]] = {}
    for row in every(db, query.order_by(sitting.c.session_id, sitting.c.number)):
        listed.setdefault(row["session_id"], []).append(cast(SittingRow, row))
    return listed


def change(db: Connection, row: SittingRow, values: Mapping[str, Any]) -> None:
    """Set when a sitting was started or ended, in `row` too."""
    where = and_(sitting.c.session_id == row["session_id"], sitting.c.number == row["number"])
    db.execute(update(sitting).where(where).values(values))
    row.update(cast(SittingRow, values))


def list_durations(db: Connection, study_hash: str) -> list[int]:
    """List the durations of the sittings that real participants have ended (ns), the shortest first."""
    query = (
        select(_TOOK)
        .join(session, session.c.session_id == sitting.c.session_id)
        .where(session.c.study_hash == study_hash, session.c.mode == "live", _TOOK >= 0)
        .order_by(_TOOK)
    )
    return list(db.execute(query).scalars())


def hold_slot(db: Connection, session_id: str, until: int) -> None:
    """Hold the slot of a participant for their return until then, if it is still theirs."""
    slot = allocation_slot.c
    held = and_(slot.session_id == session_id, slot.state == "held")
    db.execute(update(allocation_slot).where(held).values(held_until=until))


def find_session(db: Connection, link_hash: str) -> SessionRow | None:
    """Find the session of a personal link, by its hash."""
    return cast(SessionRow | None, at_most_one(db, select(session).where(session.c.link_hash == link_hash)))
