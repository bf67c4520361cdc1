"""Everything that is stored of one participation, table by table; and when participants passed each milestone."""

from __future__ import annotations

from sqlalchemy import Connection, Subquery, and_, case, func, select

from study.store.rows import Row, every
from study.store.tables import (
    comprehension,
    consent,
    earlier_response,
    page_event,
    questionnaire,
    response,
    response_conflict,
    screen,
    session,
    trial_plan,
)


def list_consents(db: Connection, session_id: str) -> list[Row]:
    """List the participant's decisions on the consent page: agreed, at."""
    return every(db, select(consent.c.agreed, consent.c.at).where(consent.c.session_id == session_id))


def list_attempts(db: Connection, session_id: str) -> list[Row]:
    """List the attempts of the comprehension check, the first first: attempt, passed, received_at."""
    columns = (comprehension.c.attempt, comprehension.c.passed, comprehension.c.received_at)
    return every(db, select(*columns).where(comprehension.c.session_id == session_id).order_by(comprehension.c.attempt))


def list_trials(db: Connection, session_id: str) -> list[Row]:
    """List every planned trial in order, with its screen and the response to it, whose columns are None until given.

    The columns ``first_*`` are of the first response to a trial of several steps.
    """
    same, before = (
        and_(t.c.session_id == trial_plan.c.session_id, t.c.trial_index == trial_plan.c.trial_index)
        for t in (response, earlier_response)
    )
    first = [earlier_response.c[name].label(f"first_{name}") for name in ("side", "rt_ms", "input", "received_at")]
    given = [column for column in response.c if column.name not in ("session_id", "trial_index", "shown_sha256")]
    query = (
        select(trial_plan, screen.c.screen_json, *given, *first)
        .join(screen, screen.c.screen_id == trial_plan.c.screen_id)
        .outerjoin(response, same)
        .outerjoin(earlier_response, and_(before, earlier_response.c.step == 1))
        .where(trial_plan.c.session_id == session_id)
    )
    return every(db, query.order_by(trial_plan.c.trial_index))


def list_events(db: Connection, session_id: str) -> list[Row]:
    """List what the participant's page noticed, in the order of receipt and, within one, of the page's clock."""
    order = (page_event.c.received_at, page_event.c.t_client_ms, page_event.c.event_id)
    return every(db, select(page_event).where(page_event.c.session_id == session_id).order_by(*order))


def list_conflicts(db: Connection, session_id: str) -> list[Row]:
    """List the responses that were not counted: trial_index, reason, received_at."""
    columns = (response_conflict.c.trial_index, response_conflict.c.reason, response_conflict.c.received_at)
    return every(db, select(*columns).where(response_conflict.c.session_id == session_id))


def list_filled_at(db: Connection, session_id: str) -> list[int]:
    """List when the questionnaire was received, in nanoseconds since 1970: once, or not at all."""
    query = select(questionnaire.c.received_at).where(questionnaire.c.session_id == session_id).distinct()
    return [int(at) for at in db.execute(query).scalars()]


def list_milestones(db: Connection, study: str) -> list[Row]:
    """List by participant when the check was passed, and when the last practice and main responses were received.

    session_id, passed_at, practised_at, responded_at: nanoseconds since 1970, or None.
    """
    mine = and_(session.c.study == study, session.c.mode == "live")
    passed, responded = _passed(), _last_responded()
    query = (
        select(session.c.session_id, passed.c.passed_at, responded.c.practised_at, responded.c.responded_at)
        .outerjoin(passed, passed.c.session_id == session.c.session_id)
        .outerjoin(responded, responded.c.session_id == session.c.session_id)
        .where(mine)
    )
    return every(db, query)


def _passed() -> Subquery:
    query = select(comprehension.c.session_id, func.min(comprehension.c.received_at).label("passed_at"))
    return query.where(comprehension.c.passed == 1).group_by(comprehension.c.session_id).subquery()


def _last_responded() -> Subquery:
    practising = response.c.trial_index < session.c.practice
    query = select(
        response.c.session_id,
        func.max(case((practising, response.c.received_at))).label("practised_at"),
        func.max(case((~practising, response.c.received_at))).label("responded_at"),
    ).join(session, session.c.session_id == response.c.session_id)
    return query.group_by(response.c.session_id).subquery()
