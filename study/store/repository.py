"""Queries on studies, slots, people and plans. Each takes a connection; who opens it decides read or write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, and_, func, insert, or_, select, update
from sqlalchemy.dialects.sqlite import insert as insert_or

from study.store.rows import Row, at_most_one, every
from study.store.tables import allocation_slot, consent, event, session, study_version, trial_plan


def open_version(db: Connection, study_hash: str, name: str, folder: str, at: int) -> None:
    """Make this version the one new participants get; another open version of the name is superseded."""
    others = and_(
        study_version.c.name == name, study_version.c.state == "open", study_version.c.study_hash != study_hash
    )
    db.execute(update(study_version).where(others).values(state="superseded"))
    row = {"study_hash": study_hash, "name": name, "folder": folder, "opened_at": at, "state": "open"}
    again = {"folder": folder, "state": "open"}
    db.execute(insert_or(study_version).values(row).on_conflict_do_update(index_elements=["study_hash"], set_=again))


def close_version(db: Connection, name: str) -> int:
    """Close the open version to new participants; the number of versions closed (0 or 1)."""
    where = and_(study_version.c.name == name, study_version.c.state == "open")
    return db.execute(update(study_version).where(where).values(state="closed")).rowcount


def versions(db: Connection) -> list[Row]:
    """Every version ever opened, the oldest first."""
    return every(db, select(study_version).order_by(study_version.c.opened_at))


def open_version_of(db: Connection, name: str) -> Row | None:
    """The version that new participants of a study get."""
    where = and_(study_version.c.name == name, study_version.c.state == "open")
    return at_most_one(db, select(study_version).where(where))


def n_blocks(db: Connection, study_hash: str, mode: str) -> int:
    """How many blocks of slots a version has in a mode."""
    where = and_(allocation_slot.c.study_hash == study_hash, allocation_slot.c.mode == mode)
    return int(db.execute(select(func.count(allocation_slot.c.block.distinct())).where(where)).scalar_one())


def add_slots(db: Connection, study_hash: str, mode: str, slots: Iterable[Mapping[str, Any]]) -> None:
    """Append slots in their order."""
    rows = [{"study_hash": study_hash, "mode": mode, **slot} for slot in slots]
    if rows:
        db.execute(insert(allocation_slot), rows)


def claim_slot(db: Connection, study_hash: str, mode: str, session_id: str, now: int, until: int) -> Row | None:
    """The lowest slot that is open, or held by someone whose time is over; None where there is none."""
    slot = allocation_slot.c
    free = or_(slot.state == "open", and_(slot.state == "held", slot.held_until < now))
    lowest = select(func.min(slot.slot_id)).where(slot.study_hash == study_hash, slot.mode == mode, free)
    taken = (
        update(allocation_slot)
        .where(slot.slot_id == lowest.scalar_subquery())
        .values(state="held", session_id=session_id, held_until=until)
        .returning(allocation_slot)
    )
    return at_most_one(db, taken)


def has_free_slot(db: Connection, study_hash: str, mode: str, now: int) -> bool:
    """Whether a newcomer would get a slot now."""
    slot = allocation_slot.c
    free = or_(slot.state == "open", and_(slot.state == "held", slot.held_until < now))
    found = select(slot.slot_id).where(slot.study_hash == study_hash, slot.mode == mode, free).limit(1)
    return db.execute(found).first() is not None


def finish_slot(db: Connection, session_id: str) -> None:
    """Mark a person's slot done; one who lost it to another by taking too long has none."""
    db.execute(update(allocation_slot).where(allocation_slot.c.session_id == session_id).values(state="done"))


def add_session(db: Connection, values: Mapping[str, Any]) -> None:
    """A new person."""
    db.execute(insert(session).values(values))


def session_by_token(db: Connection, token_hash: str) -> Row | None:
    """The person who holds a token."""
    return at_most_one(db, select(session).where(session.c.token_hash == token_hash))


def session_of(db: Connection, study: str, mode: str, participant_id: str) -> Row | None:
    """The session of a returning person."""
    where = and_(session.c.study == study, session.c.mode == mode, session.c.participant_id == participant_id)
    return at_most_one(db, select(session).where(where))


def change_session(db: Connection, session_id: str, values: Mapping[str, Any]) -> None:
    """Set columns of a session."""
    db.execute(update(session).where(session.c.session_id == session_id).values(values))


def add_consent(db: Connection, values: Mapping[str, Any]) -> None:
    """What somebody answered to which text."""
    db.execute(insert(consent).values(values))


def add_plan(db: Connection, rows: list[dict[str, Any]]) -> None:
    """Every trial of a person, before the first is shown."""
    db.execute(insert(trial_plan), rows)


def planned(db: Connection, session_id: str, first: int, count: int) -> list[Row]:
    """Up to `count` planned trials from index `first` on."""
    index = trial_plan.c.trial_index
    where = and_(trial_plan.c.session_id == session_id, index >= first, index < first + count)
    return every(db, select(trial_plan).where(where).order_by(index))


def add_events(db: Connection, rows: list[dict[str, Any]]) -> int:
    """Append events; one whose id is known already is skipped. Returns how many were new."""
    new = 0
    for row in rows:
        new += db.execute(insert_or(event).values(row).on_conflict_do_nothing()).rowcount
    return new


def session_counts(db: Connection) -> list[Row]:
    """Number of sessions by version, mode, condition and stage."""
    by = (session.c.study_hash, session.c.mode, session.c.condition, session.c.stage)
    return every(db, select(*by, func.count().label("n")).group_by(*by))


def slot_counts(db: Connection) -> list[Row]:
    """Number of slots by version, mode, condition and state."""
    by = (
        allocation_slot.c.study_hash,
        allocation_slot.c.mode,
        allocation_slot.c.condition,
        allocation_slot.c.state,
    )
    return every(db, select(*by, func.count().label("n")).group_by(*by))
