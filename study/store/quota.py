"""Quotas: the slots of a study, each for one condition, and which participant holds each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from sqlalchemy import Connection, and_, bindparam, func, insert, or_, select, update

from study.store.rows import Row, SlotRow, at_most_one, every
from study.store.tables import allocation_slot

# Built once: for every newcomer, SQLAlchemy would take longer to build these than the database to run them.
_SLOT = allocation_slot.c
_FREE = and_(
    _SLOT.study_hash == bindparam("version"),
    _SLOT.mode == bindparam("of_mode"),
    or_(_SLOT.state == "open", and_(_SLOT.state == "held", _SLOT.held_until < bindparam("now"))),
)
_ANY_FREE = select(_SLOT.slot_id).where(_FREE).limit(1)
_CLAIM = (
    update(allocation_slot)
    .where(_SLOT.slot_id == select(func.min(_SLOT.slot_id)).where(_FREE).scalar_subquery())
    .values(state="held", session_id=bindparam("holder"), held_until=bindparam("until"))
    .returning(allocation_slot)
)


def n_blocks(db: Connection, study_hash: str, mode: str) -> int:
    """Count the blocks of slots of a version in a mode."""
    where = and_(allocation_slot.c.study_hash == study_hash, allocation_slot.c.mode == mode)
    return int(db.execute(select(func.count(allocation_slot.c.block.distinct())).where(where)).scalar_one())


def add_slots(db: Connection, study_hash: str, mode: str, slots: Iterable[Mapping[str, Any]]) -> None:
    """Append slots in their order."""
    rows = [{"study_hash": study_hash, "mode": mode, **slot} for slot in slots]
    if rows:
        db.execute(insert(allocation_slot), rows)


def claim_slot(db: Connection, study_hash: str, mode: str, session_id: str, now: int, until: int) -> SlotRow | None:
    """Claim the first slot that is open or whose holder ran out of time; None if there is none."""
    where = {"version": study_hash, "of_mode": mode, "now": now}
    return cast(SlotRow | None, at_most_one(db, _CLAIM, {**where, "holder": session_id, "until": until}))


def has_free_slot(db: Connection, study_hash: str, mode: str, now: int) -> bool:
    """Tell whether a new participant would get a slot now."""
    return db.execute(_ANY_FREE, {"version": study_hash, "of_mode": mode, "now": now}).first() is not None


def finish_slot(db: Connection, session_id: str) -> bool:
    """Mark a participant's slot done; return False if it was given to another after their time ran out."""
    mine = allocation_slot.c.session_id == session_id
    return db.execute(update(allocation_slot).where(mine).values(state="done")).rowcount > 0


def free_slot(db: Connection, session_id: str) -> None:
    """Release a participant's slot for the next participant."""
    mine = allocation_slot.c.session_id == session_id
    db.execute(update(allocation_slot).where(mine).values(state="open", session_id=None, held_until=None))


def all_slots(db: Connection) -> list[SlotRow]:
    """List every slot."""
    return cast(list[SlotRow], every(db, select(allocation_slot).order_by(allocation_slot.c.slot_id)))


def slot_counts(db: Connection) -> list[Row]:
    """Count slots by version, mode, condition and state."""
    by = (
        allocation_slot.c.study_hash,
        allocation_slot.c.mode,
        allocation_slot.c.condition,
        allocation_slot.c.state,
    )
    return every(db, select(*by, func.count().label("n")).group_by(*by))
