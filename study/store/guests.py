"""Rows of access modes, closed lists and exclusions."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, and_, func, select, update

from study.store.rows import Row, every
from study.store.tables import exclusion, invitation, response, session, study_version, trial_plan
from study.store.upsert import insert_or


def set_access(db: Connection, study: str, access: str) -> int:
    """Set who may take part in the open version; return the number of versions changed (0 or 1)."""
    mine = and_(study_version.c.name == study, study_version.c.state == "open")
    return db.execute(update(study_version).where(mine).values(access=access)).rowcount


def invite(db: Connection, study: str, participant_ids: Iterable[str]) -> None:
    """Add participants to a study's closed list; those on it stay."""
    for participant_id in participant_ids:
        row = insert_or(db, invitation).values(study=study, participant_id=participant_id)
        db.execute(row.on_conflict_do_nothing())


def n_invited(db: Connection, study: str) -> int:
    """Count the participants on a study's closed list."""
    return int(db.execute(select(func.count()).where(invitation.c.study == study)).scalar_one())


def is_invited(db: Connection, study: str, participant_id: str) -> bool:
    """Tell whether a participant is on the study's closed list."""
    mine = and_(invitation.c.study == study, invitation.c.participant_id == participant_id)
    return db.execute(select(invitation.c.study).where(mine)).first() is not None


def exclude(db: Connection, session_id: str, reason: str, at: int) -> None:
    """Exclude a participant for a reason; the first reason stays."""
    row = {"session_id": session_id, "reason": reason, "at": at}
    db.execute(insert_or(db, exclusion).values(row).on_conflict_do_nothing())


def exclusions(db: Connection, study: str) -> list[Row]:
    """Return the participants whom a researcher excluded from a study, in order of time."""
    query = (
        select(exclusion, session.c.participant_id)
        .join(session, session.c.session_id == exclusion.c.session_id)
        .where(session.c.study == study)
        .order_by(exclusion.c.at, exclusion.c.session_id)
    )
    return every(db, query)


def count_exclusions(db: Connection, study_hash: str) -> list[Row]:
    """Count the participants whom a researcher excluded from a frozen study and their main responses, by reason."""
    counted = (
        select(response.c.session_id, func.count().label("responses"))
        .join(
            trial_plan,
            and_(trial_plan.c.session_id == response.c.session_id, trial_plan.c.trial_index == response.c.trial_index),
        )
        .where(trial_plan.c.phase == "main")
        .group_by(response.c.session_id)
        .subquery()
    )
    query = (
        select(
            exclusion.c.reason,
            func.count().label("people"),
            func.coalesce(func.sum(counted.c.responses), 0).label("responses"),
        )
        .join(session, session.c.session_id == exclusion.c.session_id)
        .outerjoin(counted, counted.c.session_id == exclusion.c.session_id)
        .where(session.c.study_hash == study_hash)
        .group_by(exclusion.c.reason)
        .order_by(func.min(exclusion.c.at), exclusion.c.reason)
    )
    return every(db, query)


def origins(db: Connection, study: str) -> list[Row]:
    """List participants whose network address was counted: session_id, origin, started_at, the oldest first."""
    columns = (session.c.session_id, session.c.origin, session.c.started_at)
    mine = and_(session.c.study == study, session.c.mode == "live", session.c.origin.is_not(None))
    return every(db, select(*columns).where(mine).order_by(session.c.started_at))
