"""Codes that raters give to texts: each change of mind is a row of its own, and the last one counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, select

from study.store.rows import Row, every
from study.store.tables import exclusion, response, response_code, session, trial_plan


class TextKey(NamedTuple):
    """Which text: the session, and the index of the trial in its plan."""

    session_id: str
    trial_index: int


def list_texts(db: Connection, study: str, modes: Sequence[str]) -> list[Row]:
    """List the texts of a study's main trials, without participants whom a researcher excluded.

    Each with its trial and frozen study, and nothing about its participant or their condition.
    """
    planned = and_(trial_plan.c.session_id == response.c.session_id, trial_plan.c.trial_index == response.c.trial_index)
    joined = response.join(trial_plan, planned).join(session, session.c.session_id == response.c.session_id)
    query = (
        select(
            response.c.session_id, response.c.trial_index, response.c.text, trial_plan.c.item_id, session.c.study_hash
        )
        .select_from(joined)
        .where(session.c.study == study, session.c.mode.in_(modes), trial_plan.c.phase == "main")
        .where(response.c.text.is_not(None), session.c.session_id.not_in(select(exclusion.c.session_id)))
        .order_by(response.c.session_id, response.c.trial_index)
    )
    return every(db, query)


def list_codes(db: Connection, study: str, modes: Sequence[str]) -> list[Row]:
    """List every code of a study, also those that were changed later, the oldest first."""
    query = (
        select(response_code)
        .join(session, session.c.session_id == response_code.c.session_id)
        .where(session.c.study == study, session.c.mode.in_(modes))
        .order_by(response_code.c.at, response_code.c.rater, response_code.c.revision)
    )
    return every(db, query)


def find_last(db: Connection, key: TextKey, rater: str) -> Row | None:
    """Find the code that a rater gave a text last; None before the first."""
    rows = every(db, select(response_code).where(_is_of(key), response_code.c.rater == rater))
    return max(rows, key=lambda row: int(row["revision"]), default=None)


def add(db: Connection, key: TextKey, rater: str, code: str, at: int) -> bool:
    """Add a code; return False where the rater's last one is the same."""
    last = find_last(db, key, rater)
    if last is not None and last["code"] == code:
        return False
    revision = 1 if last is None else last["revision"] + 1
    row = {**key._asdict(), "rater": rater, "revision": revision, "code": code, "at": at}
    db.execute(insert(response_code).values(row))
    return True


def remove_rater(db: Connection, study: str, modes: Sequence[str], rater: str) -> int:
    """Remove all codes of a rater in a study; return how many there were."""
    mine = select(session.c.session_id).where(session.c.study == study, session.c.mode.in_(modes))
    chosen = and_(response_code.c.session_id.in_(mine), response_code.c.rater == rater)
    return db.execute(delete(response_code).where(chosen)).rowcount


def _is_of(key: TextKey) -> ColumnElement[bool]:
    return and_(response_code.c.session_id == key.session_id, response_code.c.trial_index == key.trial_index)
