"""Responses: append-only and chained by hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from sqlalchemy import Connection, and_, bindparam, delete, func, insert, or_, select, union_all

from study.store.rows import EarlierResponseRow, ResponseRow, Row, every
from study.store.tables import (
    CHAIN,
    earlier_response,
    erased_response,
    exclusion,
    response,
    response_conflict,
    screen,
    session,
    trial_plan,
)
from study.store.upsert import insert_or

GENESIS = "0" * 64

# Built once: for every response, SQLAlchemy would take longer to build these than the database to run them.
_LAST_LIKE, _EARLIER_LIKE = (
    select(t).where(
        t.c.session_id == bindparam("session"),
        or_(t.c.trial_index == bindparam("trial"), t.c.attempt_id == bindparam("attempt")),
    )
    for t in (response, earlier_response)
)
_ENDS = [select(t.c.seq, t.c.row_hash).order_by(t.c.seq.desc()).limit(1).subquery() for t in CHAIN]
_END = union_all(*(select(end) for end in _ENDS))
_INSERT, _INSERT_EARLIER = insert(response), insert(earlier_response)
_EARLIER_OF_TRIAL = (
    select(earlier_response)
    .where(
        earlier_response.c.session_id == bindparam("session"),
        earlier_response.c.trial_index == bindparam("trial"),
    )
    .order_by(earlier_response.c.step)
)
_FIRST = and_(
    earlier_response.c.session_id == response.c.session_id,
    earlier_response.c.trial_index == response.c.trial_index,
    earlier_response.c.step == 1,
)
_OF_FIRST = tuple(
    getattr(earlier_response.c, name).label(f"first_{name}")
    for name in ("choice", "side", "rt_ms", "confidence", "received_at")
)
"""Columns of the first of several responses to a trial; None where a trial has one."""

LATER = ("confidence", "dropped_frames", "clock_ms", "place", "text")
"""Columns newer than the first responses: empty ones are not hashed."""


def find_responses(
    db: Connection, session_id: str, place: tuple[int, int], attempt_id: str, steps: int = 1
) -> tuple[Row | None, Row | None]:
    """Find the response to a step of a trial, and the response of the same session with an attempt id.

    Parameters
    ----------
    place
        Index of the trial, and the step from 1.
    steps
        Number of steps of the trial; the response to the last is in ``response``.
    """
    like = {"session": session_id, "trial": place[0], "attempt": attempt_id}
    rows = [{"step": steps, **row} for row in every(db, _LAST_LIKE, like)]
    if steps > 1:
        rows += every(db, _EARLIER_LIKE, like)
    of_step = next((row for row in rows if (row["trial_index"], row["step"]) == place), None)
    return of_step, next((row for row in rows if row["attempt_id"] == attempt_id), None)


def list_earlier(db: Connection, session_id: str) -> list[EarlierResponseRow]:
    """List a participant's responses before the last one of each trial, in the order of trials and steps."""
    order = (earlier_response.c.trial_index, earlier_response.c.step)
    query = select(earlier_response).where(earlier_response.c.session_id == session_id).order_by(*order)
    return cast(list[EarlierResponseRow], every(db, query))


def list_earlier_of_trial(db: Connection, session_id: str, trial_index: int) -> list[EarlierResponseRow]:
    """List a participant's responses to a trial before its last one, in the order of steps."""
    rows = every(db, _EARLIER_OF_TRIAL, {"session": session_id, "trial": trial_index})
    return cast(list[EarlierResponseRow], rows)


def count_responses(db: Connection, session_id: str) -> int:
    """Count the trials to which a participant responded."""
    return int(db.execute(select(func.count()).where(response.c.session_id == session_id)).scalar_one())


def append(db: Connection, values: Mapping[str, Any]) -> None:
    """Append a response at the end of the chain; one with a ``step`` comes before the last one of its trial."""
    seq, prev_hash = max((tuple(end) for end in db.execute(_END)), default=(0, GENESIS))
    row = {**values, "seq": seq + 1, "prev_hash": prev_hash}
    db.execute(_INSERT_EARLIER if "step" in row else _INSERT, {**row, "row_hash": row_hash(row)})


def row_hash(row: Mapping[str, Any]) -> str:
    """Hash every column of a response but `row_hash` (SHA-256); `prev_hash` ties it to all responses before."""
    content = {key: value for key, value in row.items() if key != "row_hash" and not (key in LATER and value is None)}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def erase(db: Connection, session_id: str) -> int:
    """Erase a participant's responses, leaving their places and hashes in the chain; return how many there were."""
    erased = 0
    for table in (response, earlier_response):
        kept = (table.c.seq, table.c.session_id, table.c.prev_hash, table.c.row_hash)
        mine = table.c.session_id == session_id
        db.execute(insert(erased_response).from_select([column.name for column in kept], select(*kept).where(mine)))
        erased += db.execute(delete(table).where(mine)).rowcount
    return erased


def find_broken_links(db: Connection) -> Iterator[str]:
    """Yield one sentence per response that was changed, removed or inserted after it was written.

    A response erased by a withdrawal leaves only its hashes, and they must fit. The newest responses can
    be cut off without a trace in the chain itself: to detect that, the last hash is stored elsewhere.
    """
    expected_seq, prev_hash = 1, GENESIS
    rows = [row for table in CHAIN for row in every(db, select(table))]
    for row in sorted(rows, key=lambda row: row["seq"]):
        erased = "trial_index" not in row
        place = f"Response {row['seq']} (session {row['session_id']}, trial {row.get('trial_index', 'erased')})"
        if row["seq"] != expected_seq or row["prev_hash"] != prev_hash:
            yield f"{place} does not follow the response before it: one was removed, inserted or changed."
        if not erased and row_hash(row) != row["row_hash"]:
            yield f"{place} was changed after it was recorded."
        expected_seq, prev_hash = row["seq"] + 1, row["row_hash"]


def add_conflict(db: Connection, values: Mapping[str, Any]) -> None:
    """Store a conflicting response, once."""
    db.execute(insert_or(db, response_conflict).values(values).on_conflict_do_nothing())


def of_session(db: Connection, session_id: str) -> list[ResponseRow]:
    """List a participant's responses, in the order of the trials."""
    mine = response.c.session_id == session_id
    return cast(list[ResponseRow], every(db, select(response).where(mine).order_by(response.c.trial_index)))


def hashes_of(db: Connection, session_id: str) -> list[str]:
    """List the hashes of a participant's responses in the order they came, even after erasure."""
    hashes = [
        tuple(row)
        for table in CHAIN
        for row in db.execute(select(table.c.seq, table.c.row_hash).where(table.c.session_id == session_id))
    ]
    return [row_hash for _, row_hash in sorted(hashes)]


def choices(db: Connection, session_id: str, phase: str) -> dict[str, str]:
    """Return a participant's choices, ``a`` or ``b``, by trial id."""
    same = and_(trial_plan.c.session_id == response.c.session_id, trial_plan.c.trial_index == response.c.trial_index)
    query = select(trial_plan.c.item_id, response.c.choice).join_from(response, trial_plan, same)
    rows = every(db, query.where(response.c.session_id == session_id, trial_plan.c.phase == phase))
    return {row["item_id"]: row["choice"] for row in rows}


def list_main_responses(db: Connection, study: str, modes: Sequence[str]) -> list[Row]:
    """List the responses to a study's main trials, without participants whom a researcher excluded.

    Each with the columns ``first_*`` of the first response, where a trial has more than one, and its screen.
    """
    joined = response.join(
        trial_plan,
        and_(
            trial_plan.c.session_id == response.c.session_id,
            trial_plan.c.trial_index == response.c.trial_index,
        ),
    ).join(session, session.c.session_id == response.c.session_id)
    joined = joined.join(screen, screen.c.screen_id == trial_plan.c.screen_id).outerjoin(earlier_response, _FIRST)
    facts = (session.c.participant_id, session.c.mode, session.c.condition, session.c.study_hash, session.c.practice)
    query = (
        select(response, *_OF_FIRST, trial_plan.c.item_id, screen.c.screen_json, *facts)
        .select_from(joined)
        .where(session.c.study == study, session.c.mode.in_(modes), trial_plan.c.phase == "main")
        .where(session.c.session_id.not_in(select(exclusion.c.session_id)))
        .order_by(session.c.started_at, session.c.session_id, response.c.trial_index)
    )
    return every(db, query)
