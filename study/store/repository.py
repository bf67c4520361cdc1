"""Queries on studies, slots, sessions and plans. Each takes a connection, whose owner decides read or write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, and_, bindparam, func, insert, select, update

from study.store.rows import PlannedRow, Row, SessionRow, VersionRow, at_most_one, every
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

# Built once: for every request, SQLAlchemy would take longer to build these than the database to run them.
_OF_TOKEN = select(session).where(session.c.token_hash == bindparam("token"))
_OF_PERSON = select(session).where(
    session.c.study == bindparam("study"),
    session.c.mode == bindparam("mode"),
    session.c.participant_id == bindparam("person"),
)
_OPEN_VERSION = select(study_version).where(study_version.c.name == bindparam("study"), study_version.c.state == "open")
_TOOK = (session.c.completed_at - session.c.agreed_at).label("took")
_DURATIONS = (
    select(_TOOK)
    .where(
        session.c.study_hash == bindparam("version"),
        session.c.mode == "live",
        session.c.stage == "done",
        session.c.agreed_at.is_not(None),
        _TOOK >= 0,  # a clock that was set back has durations below 0
    )
    .order_by(_TOOK)
)
_ATTEMPTS = select(func.count()).where(comprehension.c.session_id == bindparam("session"))
_ADD_SESSION, _ADD_CONSENT, _ADD_PLAN = insert(session), insert(consent), insert(trial_plan)
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
    """Open this version to new participants; it supersedes the open one and inherits its access mode."""
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
    """Register this version without opening it; a registered one keeps its state."""
    row = {"study_hash": study_hash, "name": name, "folder": folder, "opened_at": at, "state": "closed"}
    known = insert_or(db, study_version).values(row)
    db.execute(known.on_conflict_do_update(index_elements=["study_hash"], set_={"folder": folder}))


def close_version(db: Connection, name: str) -> int:
    """Close the open version to new participants; return the number of versions closed (0 or 1)."""
    return db.execute(update(study_version).where(_open(name)).values(state="closed", paused=0)).rowcount


def pause_version(db: Connection, name: str, paused: bool) -> int:
    """Pause or resume the open version for new participants; return the number of versions changed (0 or 1)."""
    return db.execute(update(study_version).where(_open(name)).values(paused=int(paused))).rowcount


def move_version(db: Connection, study_hash: str, folder: str) -> None:
    """Record a version's new folder."""
    db.execute(update(study_version).where(study_version.c.study_hash == study_hash).values(folder=folder))


def versions(db: Connection) -> list[VersionRow]:
    """List every version ever opened, the oldest first."""
    return cast(list[VersionRow], every(db, select(study_version).order_by(study_version.c.opened_at)))


def opened_versions_of(db: Connection, name: str) -> list[VersionRow]:
    """List the versions of a study that were ever open to participants: each has slots for them."""
    slots = select(allocation_slot.c.study_hash).where(
        allocation_slot.c.study_hash == study_version.c.study_hash, allocation_slot.c.mode == "live"
    )
    return cast(list[VersionRow], every(db, select(study_version).where(study_version.c.name == name, slots.exists())))


def open_version_of(db: Connection, name: str) -> VersionRow | None:
    """Find the version that new participants of a study get."""
    return cast(VersionRow | None, at_most_one(db, _OPEN_VERSION, {"study": name}))


def newest_version_of(db: Connection, name: str) -> VersionRow | None:
    """Find the version that simulated participants get, open or not."""
    named = select(study_version).where(study_version.c.name == name)
    return cast(VersionRow | None, at_most_one(db, named.order_by(study_version.c.opened_at.desc()).limit(1)))


def durations(db: Connection, study_hash: str) -> list[int]:
    """List the durations of finished participants, ns from the consent to the end, the shortest first."""
    return list(db.execute(_DURATIONS, {"version": study_hash}).scalars())


def add_session(db: Connection, values: Mapping[str, Any]) -> None:
    """Add a new participant."""
    db.execute(_ADD_SESSION, values)


def session_by_token(db: Connection, token_hash: str) -> SessionRow | None:
    """Find the participant with a token."""
    return cast(SessionRow | None, at_most_one(db, _OF_TOKEN, {"token": token_hash}))


def session_by_id(db: Connection, session_id: str) -> SessionRow:
    """Load one participant's session."""
    (row,) = every(db, select(session).where(session.c.session_id == session_id))
    return cast(SessionRow, row)


def session_of(db: Connection, study: str, mode: str, participant_id: str) -> SessionRow | None:
    """Find the session of a returning participant."""
    row = at_most_one(db, _OF_PERSON, {"study": study, "mode": mode, "person": participant_id})
    return cast(SessionRow | None, row)


def session_by_code(db: Connection, code_hash: str) -> SessionRow | None:
    """Find the session of a private code, by its keyed hash."""
    return cast(SessionRow | None, at_most_one(db, select(session).where(session.c.code_hash == code_hash)))


def sessions_without_code(db: Connection) -> list[str]:
    """List sessions of earlier versions, whose private codes are not indexed yet."""
    return list(db.execute(select(session.c.session_id).where(session.c.code_hash.is_(None))).scalars())


def change_session(db: Connection, row: SessionRow, values: Mapping[str, Any]) -> None:
    """Set columns of a session, in `row` too, so that nobody has to read it again."""
    db.execute(_CHANGE_SESSION, {**values, "changed": row["session_id"]})
    row.update(cast(SessionRow, values))


def index_code(db: Connection, session_id: str, code_hash: str) -> None:
    """Set the keyed hash by which a session is found from its private code."""
    db.execute(_CHANGE_SESSION, {"code_hash": code_hash, "changed": session_id})


def add_consent(db: Connection, values: Mapping[str, Any]) -> None:
    """Record a participant's choice on a consent text."""
    db.execute(_ADD_CONSENT, values)


def add_attempt(db: Connection, values: Mapping[str, Any]) -> None:
    """Record an attempt at the comprehension check."""
    db.execute(insert(comprehension).values(values))


def attempts(db: Connection, session_id: str) -> int:
    """Count a participant's attempts at the comprehension check."""
    return int(db.execute(_ATTEMPTS, {"session": session_id}).scalar_one())


def add_questionnaire(db: Connection, rows: list[dict[str, Any]]) -> None:
    """Record a participant's questionnaire."""
    if rows:
        db.execute(insert(questionnaire), rows)


def add_payment(db: Connection, values: Mapping[str, Any]) -> None:
    """Record a participant's bonus."""
    db.execute(insert_or(db, payment).values(values).on_conflict_do_nothing())


def payments(db: Connection, study: str) -> list[Row]:
    """List every real participant's bonus, in the order of arrival."""
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


def sessions(db: Connection, study: str, modes: Sequence[str]) -> list[SessionRow]:
    """List every participant of a study, in the order of arrival."""
    where = and_(session.c.study == study, session.c.mode.in_(modes))
    rows = every(db, select(session).where(where).order_by(session.c.started_at, session.c.session_id))
    return cast(list[SessionRow], rows)


def every_session(db: Connection) -> list[SessionRow]:
    """List every participant of every study, in the order of arrival."""
    rows = every(db, select(session).order_by(session.c.started_at, session.c.session_id))
    return cast(list[SessionRow], rows)


def add_withdrawal(db: Connection, session_id: str, at: int) -> None:
    """Record a withdrawal, which allows the erasure of a participant's rows."""
    db.execute(insert(withdrawal).values(session_id=session_id, requested_at=at))


def questionnaire_of(db: Connection, session_id: str) -> list[Row]:
    """List a participant's responses to the questionnaire."""
    return every(db, select(questionnaire).where(questionnaire.c.session_id == session_id))


def event_counts(db: Connection, session_id: str) -> dict[str, int]:
    """Count the events of each kind that the page reported."""
    query = (
        select(page_event.c.kind, func.count().label("n"))
        .where(page_event.c.session_id == session_id)
        .group_by(page_event.c.kind)
    )
    return {row["kind"]: row["n"] for row in every(db, query)}


def n_events(db: Connection, session_id: str) -> int:
    """Count the stored events of a session."""
    return int(db.execute(_EVENTS_OF, {"session": session_id}).scalar_one())


def n_conflicts(db: Connection, session_id: str) -> int:
    """Count the stored conflicting responses of a session."""
    mine = response_conflict.c.session_id == session_id
    return int(db.execute(select(func.count()).where(mine)).scalar_one())


def events_of(db: Connection, session_id: str, kind: str) -> list[Row]:
    """List a session's events of a kind."""
    mine = and_(page_event.c.session_id == session_id, page_event.c.kind == kind)
    return every(db, select(page_event).where(mine).order_by(page_event.c.received_at, page_event.c.event_id))


def last_event(db: Connection, session_id: str, kind: str) -> Row | None:
    """Find the newest event of a kind."""
    mine = and_(page_event.c.session_id == session_id, page_event.c.kind == kind)
    return at_most_one(
        db, select(page_event).where(mine).order_by(page_event.c.received_at.desc(), page_event.c.event_id).limit(1)
    )


def add_plan(db: Connection, rows: list[dict[str, Any]]) -> None:
    """Add all trials of a participant before the first is shown, each with its screen as ``screen_json``."""
    numbers = keep_screens(db, {row["screen_json"] for row in rows})
    placed = [{**row, "screen_id": numbers[row["screen_json"]]} for row in rows]
    db.execute(_ADD_PLAN, [{key: row[key] for key in row if key != "screen_json"} for row in placed])


def list_planned_trials(db: Connection, session_id: str, first: int, count: int) -> list[PlannedRow]:
    """List up to `count` planned trials from index `first` on."""
    rows = every(db, _PLANNED, {"session": session_id, "first": first, "end": first + count})
    return cast(list[PlannedRow], rows)


def add_events(db: Connection, rows: list[dict[str, Any]]) -> int:
    """Append events, skipping ids that are already stored; return how many were new."""
    once = _event_once(db.dialect.name)
    return sum(len(db.execute(once, row).all()) for row in rows)


def session_counts(db: Connection) -> list[Row]:
    """Count sessions by version, mode, condition and stage."""
    by = (session.c.study_hash, session.c.mode, session.c.condition, session.c.stage)
    return every(db, select(*by, func.count().label("n")).group_by(*by))


@cache
def _event_once(dialect: str) -> Any:
    return insert_or(dialect, page_event).on_conflict_do_nothing().returning(page_event.c.event_id)


def _open(name: str) -> ColumnElement[bool]:
    return and_(study_version.c.name == name, study_version.c.state == "open")
