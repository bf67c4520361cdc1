"""Queries on studies, slots, people and plans. Each takes a connection; who opens it decides read or write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, bindparam, delete, func, insert, or_, select, update

from study.store.rows import Row, at_most_one, every
from study.store.screens import keep_screens
from study.store.tables import (
    allocation_slot,
    comprehension,
    consent,
    page_event,
    payment,
    questionnaire,
    response_conflict,
    screen,
    session,
    study_version,
    trial_plan,
    withdrawal,
)
from study.store.upsert import insert_or

# Written once: SQLAlchemy takes longer to put these together than the database to run them, at every request.
_OF_TOKEN = select(session).where(session.c.token_hash == bindparam("token"))
_EVENTS_OF = select(func.count()).where(page_event.c.session_id == bindparam("session"))
_CHANGE_SESSION = update(session).where(session.c.session_id == bindparam("changed"))
_PLANNED = (
    select(trial_plan, screen.c.screen_json)
    .join(screen, screen.c.screen_id == trial_plan.c.screen_id)
    .where(
        trial_plan.c.session_id == bindparam("session"),
        trial_plan.c.trial_index >= bindparam("first"),
        trial_plan.c.trial_index < bindparam("end"),
    )
    .order_by(trial_plan.c.trial_index)
)


def open_version(db: Connection, study_hash: str, name: str, folder: str, at: int) -> None:
    """Make this version the one new participants get; it supersedes the open one and keeps who may take part."""
    access = db.execute(select(study_version.c.access).where(_open(name))).scalar_one_or_none() or "open"
    others = and_(
        study_version.c.name == name, study_version.c.state == "open", study_version.c.study_hash != study_hash
    )
    db.execute(update(study_version).where(others).values(state="superseded"))
    row = {"study_hash": study_hash, "name": name, "folder": folder, "opened_at": at, "state": "open", "access": access}
    again = {"folder": folder, "state": "open"}
    db.execute(
        insert_or(db, study_version).values(row).on_conflict_do_update(index_elements=["study_hash"], set_=again)
    )


def add_version(db: Connection, study_hash: str, name: str, folder: str, at: int) -> None:
    """Know this version without letting anybody in; one that is known stays as it is."""
    row = {"study_hash": study_hash, "name": name, "folder": folder, "opened_at": at, "state": "closed"}
    known = insert_or(db, study_version).values(row)
    db.execute(known.on_conflict_do_update(index_elements=["study_hash"], set_={"folder": folder}))


def close_version(db: Connection, name: str) -> int:
    """Close the open version to new participants; the number of versions closed (0 or 1)."""
    return db.execute(update(study_version).where(_open(name)).values(state="closed", paused=0)).rowcount


def pause_version(db: Connection, name: str, paused: bool) -> int:
    """Keep new participants from the open version for a while, or no more; the number of versions (0 or 1)."""
    return db.execute(update(study_version).where(_open(name)).values(paused=int(paused))).rowcount


def move_version(db: Connection, study_hash: str, folder: str) -> None:
    """Say where a version's bundle is now."""
    db.execute(update(study_version).where(study_version.c.study_hash == study_hash).values(folder=folder))


def versions(db: Connection) -> list[Row]:
    """Every version ever opened, the oldest first."""
    return every(db, select(study_version).order_by(study_version.c.opened_at))


def open_version_of(db: Connection, name: str) -> Row | None:
    """The version that new participants of a study get."""
    return at_most_one(db, select(study_version).where(_open(name)))


def newest_version_of(db: Connection, name: str) -> Row | None:
    """The version that simulated participants get, whether it is open or not."""
    named = select(study_version).where(study_version.c.name == name)
    return at_most_one(db, named.order_by(study_version.c.opened_at.desc()).limit(1))


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


def finish_slot(db: Connection, session_id: str) -> bool:
    """Mark a participant's slot done; False for one who lost it to another by taking too long."""
    mine = allocation_slot.c.session_id == session_id
    return db.execute(update(allocation_slot).where(mine).values(state="done")).rowcount > 0


def free_slot(db: Connection, session_id: str) -> None:
    """Give a participant's slot to whoever comes next."""
    mine = allocation_slot.c.session_id == session_id
    db.execute(update(allocation_slot).where(mine).values(state="open", session_id=None, held_until=None))


def durations(db: Connection, study_hash: str) -> list[int]:
    """How long everybody who finished took, ns from the consent to the end, the shortest first."""
    took = (session.c.completed_at - session.c.agreed_at).label("took")
    done = and_(session.c.study_hash == study_hash, session.c.mode == "live", session.c.stage == "done")
    return list(db.execute(select(took).where(done, session.c.agreed_at.is_not(None)).order_by(took)).scalars())


def add_session(db: Connection, values: Mapping[str, Any]) -> None:
    """A new participant."""
    db.execute(insert(session).values(values))


def session_by_token(db: Connection, token_hash: str) -> Row | None:
    """The participant who holds a token."""
    return at_most_one(db, _OF_TOKEN, {"token": token_hash})


def session_by_id(db: Connection, session_id: str) -> Row:
    """One participant."""
    (found,) = every(db, select(session).where(session.c.session_id == session_id))
    return found


def session_of(db: Connection, study: str, mode: str, participant_id: str) -> Row | None:
    """The session of a returning participant."""
    where = and_(session.c.study == study, session.c.mode == mode, session.c.participant_id == participant_id)
    return at_most_one(db, select(session).where(where))


def session_by_code(db: Connection, code_hash: str) -> Row | None:
    """The session of a private code, by its keyed hash."""
    return at_most_one(db, select(session).where(session.c.code_hash == code_hash))


def sessions_without_code(db: Connection) -> list[str]:
    """Sessions of earlier versions, whose private codes are not indexed yet."""
    return list(db.execute(select(session.c.session_id).where(session.c.code_hash.is_(None))).scalars())


def change_session(db: Connection, session_id: str, values: Mapping[str, Any]) -> None:
    """Set columns of a session."""
    db.execute(_CHANGE_SESSION, {**values, "changed": session_id})


def add_consent(db: Connection, values: Mapping[str, Any]) -> None:
    """What somebody answered to which text."""
    db.execute(insert(consent).values(values))


def add_attempt(db: Connection, values: Mapping[str, Any]) -> None:
    """One try of the comprehension check."""
    db.execute(insert(comprehension).values(values))


def attempts(db: Connection, session_id: str) -> int:
    """How many tries of the comprehension check a participant had."""
    mine = comprehension.c.session_id == session_id
    return int(db.execute(select(func.count()).where(mine)).scalar_one())


def add_questionnaire(db: Connection, rows: list[dict[str, Any]]) -> None:
    """What a participant answered after the trials."""
    if rows:
        db.execute(insert(questionnaire), rows)


def add_payment(db: Connection, values: Mapping[str, Any]) -> None:
    """What a participant is owed besides her base pay."""
    db.execute(insert_or(db, payment).values(values).on_conflict_do_nothing())


def payments(db: Connection, study: str) -> list[Row]:
    """Every real participant's bonus, by the order of arrival."""
    query = (
        select(payment, session.c.participant_id)
        .join(session, session.c.session_id == payment.c.session_id)
        .where(session.c.study == study, session.c.mode == "live")
        .order_by(session.c.started_at, payment.c.session_id)
    )
    return every(db, query)


def set_batch(db: Connection, session_ids: list[str], batch: int) -> None:
    """Mark bonuses as handed over."""
    db.execute(update(payment).where(payment.c.session_id.in_(session_ids)).values(batch=batch))


def sessions(db: Connection, study: str, modes: Sequence[str]) -> list[Row]:
    """Every participant of a study, by the order of arrival."""
    where = and_(session.c.study == study, session.c.mode.in_(modes))
    return every(db, select(session).where(where).order_by(session.c.started_at, session.c.session_id))


def every_session(db: Connection) -> list[Row]:
    """Every participant of every study, by the order of arrival."""
    return every(db, select(session).order_by(session.c.started_at, session.c.session_id))


def all_slots(db: Connection) -> list[Row]:
    """Every place."""
    return every(db, select(allocation_slot).order_by(allocation_slot.c.slot_id))


def erase_rest(db: Connection, session_id: str) -> None:
    """Everything a participant left besides her answers."""
    for table in (response_conflict, page_event, comprehension, questionnaire, trial_plan):
        db.execute(delete(table).where(table.c.session_id == session_id))


def add_withdrawal(db: Connection, session_id: str, at: int) -> None:
    """Allow the erasure of a participant's rows."""
    db.execute(insert(withdrawal).values(session_id=session_id, requested_at=at))


def attempts_of(db: Connection, session_id: str) -> list[Row]:
    """A participant's tries of the comprehension check, in their order."""
    mine = comprehension.c.session_id == session_id
    return every(db, select(comprehension).where(mine).order_by(comprehension.c.attempt))


def questionnaire_of(db: Connection, session_id: str) -> list[Row]:
    """A participant's questionnaire."""
    return every(db, select(questionnaire).where(questionnaire.c.session_id == session_id))


def payment_of(db: Connection, session_id: str) -> Row | None:
    """A participant's bonus."""
    return at_most_one(db, select(payment).where(payment.c.session_id == session_id))


def event_counts(db: Connection, session_id: str) -> dict[str, int]:
    """How often the page noticed what."""
    query = (
        select(page_event.c.kind, func.count().label("n"))
        .where(page_event.c.session_id == session_id)
        .group_by(page_event.c.kind)
    )
    return {row["kind"]: row["n"] for row in every(db, query)}


def n_events(db: Connection, session_id: str) -> int:
    """How many events of a session are kept."""
    return int(db.execute(_EVENTS_OF, {"session": session_id}).scalar_one())


def n_conflicts(db: Connection, session_id: str) -> int:
    """How many second responses of a session are kept."""
    mine = response_conflict.c.session_id == session_id
    return int(db.execute(select(func.count()).where(mine)).scalar_one())


def last_event(db: Connection, session_id: str, kind: str) -> Row | None:
    """The newest event of a kind."""
    mine = and_(page_event.c.session_id == session_id, page_event.c.kind == kind)
    return at_most_one(
        db, select(page_event).where(mine).order_by(page_event.c.received_at.desc(), page_event.c.event_id).limit(1)
    )


def add_plan(db: Connection, rows: list[dict[str, Any]]) -> None:
    """Every trial of a participant, before the first is shown; each has its screen as ``screen_json``."""
    numbers = keep_screens(db, {row["screen_json"] for row in rows})
    placed = [{**row, "screen_id": numbers[row["screen_json"]]} for row in rows]
    db.execute(insert(trial_plan), [{key: row[key] for key in row if key != "screen_json"} for row in placed])


def list_planned_trials(db: Connection, session_id: str, first: int, count: int) -> list[Row]:
    """Up to `count` planned trials from index `first` on."""
    return every(db, _PLANNED, {"session": session_id, "first": first, "end": first + count})


def add_events(db: Connection, rows: list[dict[str, Any]]) -> int:
    """Append events; one whose id is known already is skipped. Returns how many were new."""
    once = _event_once(db.dialect.name)
    return sum(len(db.execute(once, row).all()) for row in rows)


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


@cache
def _event_once(dialect: str) -> Any:
    return insert_or(dialect, page_event).on_conflict_do_nothing().returning(page_event.c.event_id)


def _open(name: str) -> ColumnElement[bool]:
    return and_(study_version.c.name == name, study_version.c.state == "open")
