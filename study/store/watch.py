"""Statistics of a collection for monitoring: one row per participant or time, never the content of a response."""

from __future__ import annotations

from sqlalchemy import Connection, Select, Subquery, and_, case, func, select

from study.store.rows import Row, every
from study.store.tables import page_event, response, response_conflict, session, trial_plan


def summarise_responses(db: Connection, study: str, fastest_ms: float) -> dict[str, Row]:
    """Summarise by participant: responses, fast ones (< `fastest_ms`), time hidden (ms), longest run of one side."""
    fast = func.sum(case((response.c.rt_ms < fastest_ms, 1), else_=0)).label("fast")
    away = func.coalesce(func.sum(response.c.blur_ms), 0.0).label("blur_ms")
    query = _of_study(select(response.c.session_id, func.count().label("responses"), fast, away), study)
    summaries = {row["session_id"]: {**row, "run": 0} for row in every(db, query.group_by(response.c.session_id))}
    for row in every(db, _longest_runs(study)):
        summaries[row["session_id"]]["run"] = row["run"]
    return summaries


def count_missed_catches(db: Connection, study: str) -> dict[str, int]:
    """Count failed attention checks by participant."""
    planned = and_(
        trial_plan.c.session_id == response.c.session_id,
        trial_plan.c.trial_index == response.c.trial_index,
        trial_plan.c.phase == "catch",
        response.c.choice != "a",
    )
    query = _of_study(select(response.c.session_id, func.count().label("n")).join(trial_plan, planned), study)
    return {row["session_id"]: row["n"] for row in every(db, query.group_by(response.c.session_id))}


def count_responses_by_time(db: Connection, study: str, step_ns: int) -> list[Row]:
    """Count responses in steps of time since 1970, by the number of the step."""
    step = (response.c.received_at // step_ns).label("step")
    query = _of_study(select(step, func.count().label("n")), study)
    return every(db, query.group_by(step).order_by(step))


def incidents(db: Connection, study: str, kinds: tuple[str, ...]) -> dict[str, int]:
    """Count the events of some kinds that pages reported, and conflicting responses."""
    mine = and_(session.c.study == study, session.c.mode == "live")
    noticed = (
        select(page_event.c.kind, func.count().label("n"))
        .join(session, session.c.session_id == page_event.c.session_id)
        .where(mine, page_event.c.kind.in_(kinds))
        .group_by(page_event.c.kind)
    )
    same = session.c.session_id == response_conflict.c.session_id
    second = select(func.count()).select_from(response_conflict).join(session, same).where(mine)
    counts = {row["kind"]: row["n"] for row in every(db, noticed)}
    return {**counts, "conflict": int(db.execute(second).scalar_one())}


def _of_study(query: Select[tuple[object, ...]], study: str) -> Select[tuple[object, ...]]:
    joined = query.join(session, session.c.session_id == response.c.session_id)
    return joined.where(session.c.study == study, session.c.mode == "live")


def _longest_runs(study: str) -> Select[tuple[object, ...]]:
    """Find each participant's longest run of one side, by numbering responses within participants and within sides."""
    islands = _islands(study)
    by = (islands.c.session_id, islands.c.side, islands.c.island)
    runs = select(islands.c.session_id, func.count().label("length")).group_by(*by).subquery()
    return select(runs.c.session_id, func.max(runs.c.length).label("run")).group_by(runs.c.session_id)


def _islands(study: str) -> Subquery:
    participant, order = response.c.session_id, response.c.trial_index
    place = func.row_number().over(partition_by=participant, order_by=order)
    among_side = func.row_number().over(partition_by=(participant, response.c.side), order_by=order)
    return _of_study(select(participant, response.c.side, (place - among_side).label("island")), study).subquery()
