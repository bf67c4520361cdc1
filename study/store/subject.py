"""Every table with rows about one participant: what a withdrawal erases, and what it leaves.

One list serves the erasure and the file for a participant who asks what is held about them.
"""

from __future__ import annotations

import json

from sqlalchemy import Connection, Table, delete, select

from study.store.rows import Row, SessionRow, every
from study.store.tables import (
    CHAIN,
    allocation_slot,
    audit,
    comprehension,
    consent,
    earlier_response,
    erased_response,
    exclusion,
    invitation,
    page_event,
    payment,
    questionnaire,
    response,
    response_code,
    response_conflict,
    screen,
    session,
    sitting,
    trial_plan,
    withdrawal,
)

ERASED: tuple[Table, ...] = (
    response,
    earlier_response,
    response_code,
    response_conflict,
    page_event,
    comprehension,
    questionnaire,
    sitting,
    trial_plan,
)
"""Tables from which a withdrawal erases a participant's rows; `study.store.responses` keeps hashes of the responses."""
KEPT: tuple[Table, ...] = (session, consent, allocation_slot, payment, exclusion, withdrawal, erased_response)
"""Tables in which a participant's rows stay."""


def erase_rest(db: Connection, session_id: str) -> None:
    """Erase all that a participant left except their responses."""
    for table in ERASED:
        if table not in CHAIN:
            db.execute(delete(table).where(table.c.session_id == session_id))


def collect_rows(db: Connection, of: SessionRow) -> dict[str, list[Row]]:
    """Collect everything that the database holds about a participant, by table."""
    session_id = of["session_id"]
    rows = {table.name: every(db, select(table).where(table.c.session_id == session_id)) for table in (*KEPT, *ERASED)}
    shown = select(trial_plan.c.screen_id).where(trial_plan.c.session_id == session_id)
    rows[screen.name] = every(db, select(screen).where(screen.c.screen_id.in_(shown)))
    mine = (invitation.c.study == of["study"], invitation.c.participant_id == of["participant_id"])
    rows[invitation.name] = every(db, select(invitation).where(*mine))
    rows[audit.name] = _list_acts(db, session_id)
    return rows


def _list_acts(db: Connection, session_id: str) -> list[Row]:
    """List the entries of the audit trail that name a session."""
    written = audit.c.detail_json.contains(f'"{session_id}"', autoescape=True)
    rows = every(db, select(audit).where(written).order_by(audit.c.seq))
    return [row for row in rows if session_id in json.loads(row["detail_json"]).values()]
