"""Answers: appended once, chained by hash, never changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, and_, func, insert, select
from sqlalchemy.dialects.sqlite import insert as insert_or

from study.store.rows import Row, at_most_one, every
from study.store.tables import response, response_conflict, session, trial_plan

GENESIS = "0" * 64


def answer_to(db: Connection, session_id: str, trial_index: int) -> Row | None:
    """The answer a trial has, if it has one."""
    where = and_(response.c.session_id == session_id, response.c.trial_index == trial_index)
    return at_most_one(db, select(response).where(where))


def answer_of_attempt(db: Connection, attempt_id: str) -> Row | None:
    """The answer that came with an attempt id."""
    return at_most_one(db, select(response).where(response.c.attempt_id == attempt_id))


def n_answers(db: Connection, session_id: str) -> int:
    """How many trials of a person are answered."""
    return int(db.execute(select(func.count()).where(response.c.session_id == session_id)).scalar_one())


def append(db: Connection, values: Mapping[str, Any]) -> None:
    """Append an answer at the end of the chain."""
    last = db.execute(select(response.c.seq, response.c.row_hash).order_by(response.c.seq.desc()).limit(1)).first()
    seq, prev_hash = (last.seq + 1, last.row_hash) if last else (1, GENESIS)
    row = {**values, "seq": seq, "prev_hash": prev_hash}
    db.execute(insert(response).values({**row, "row_hash": row_hash(row)}))


def row_hash(row: Mapping[str, Any]) -> str:
    """SHA-256 over every column of an answer but `row_hash`: `prev_hash` ties it to all answers before."""
    content = {key: value for key, value in row.items() if key != "row_hash"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def broken_links(db: Connection) -> Iterator[str]:
    """One sentence per answer that was changed, removed or inserted after it was written.

    The newest answers can be cut off without a trace in the chain itself: keep the last hash elsewhere to see that.
    """
    expected_seq, prev_hash = 1, GENESIS
    for row in every(db, select(response).order_by(response.c.seq)):
        place = f"Answer {row['seq']} (session {row['session_id']}, trial {row['trial_index']})"
        if row["seq"] != expected_seq or row["prev_hash"] != prev_hash:
            yield f"{place} does not follow the answer before it: one was removed, inserted or changed."
        if row_hash(row) != row["row_hash"]:
            yield f"{place} was changed after it was recorded."
        expected_seq, prev_hash = row["seq"] + 1, row["row_hash"]


def add_conflict(db: Connection, values: Mapping[str, Any]) -> None:
    """Keep an answer that came too late, once."""
    db.execute(insert_or(response_conflict).values(values).on_conflict_do_nothing())


def main_answers(db: Connection, study: str, modes: Sequence[str]) -> list[Row]:
    """Every answered main trial of a study, by person and order, with its plan and its person."""
    joined = response.join(
        trial_plan,
        and_(
            trial_plan.c.session_id == response.c.session_id,
            trial_plan.c.trial_index == response.c.trial_index,
        ),
    ).join(session, session.c.session_id == response.c.session_id)
    person = (session.c.participant_id, session.c.mode, session.c.condition, session.c.study_hash, session.c.practice)
    query = (
        select(response, trial_plan.c.item_id, *person)
        .select_from(joined)
        .where(session.c.study == study, session.c.mode.in_(modes), trial_plan.c.phase == "main")
        .order_by(session.c.started_at, session.c.session_id, response.c.trial_index)
    )
    return every(db, query)
