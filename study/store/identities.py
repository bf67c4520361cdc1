"""Recruiters' ids of participants, in a separate file or schema: readers of the responses do not find them there.

Elsewhere a participant has only a keyed hash. Each row is erased when its retention time ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, MetaData, delete, select, update

from study.store import logins
from study.store.migrations.translation import in_both
from study.store.rows import Row, every
from study.store.tables import TEXT, WHOLE, table
from study.store.upsert import insert_or

MIGRATIONS = in_both(
    (
        """
CREATE TABLE identity(
  participant_id TEXT PRIMARY KEY, study TEXT NOT NULL, source TEXT NOT NULL, ext_person TEXT NOT NULL,
  ext_study TEXT, ext_session TEXT, created_at INTEGER NOT NULL, erase_after INTEGER NOT NULL,
  UNIQUE(study, source, ext_person)) STRICT""",
    ),
    logins.STATEMENTS,
    logins.ADD_ADDRESS,
    logins.LINKS,
    logins.ACCOUNTS,
)

identity = table(
    "identity", MetaData(),
    participant_id=TEXT, study=TEXT, source=TEXT, ext_person=TEXT, ext_study=TEXT, ext_session=TEXT,
    created_at=WHOLE, erase_after=WHOLE,
)  # fmt: skip


def add(db: Connection, values: Mapping[str, Any]) -> None:
    """Store a participant's identity; if they come again, the newest submission counts."""
    again = {key: values[key] for key in ("ext_study", "ext_session")}
    statement = insert_or(db, identity).values(values)
    db.execute(statement.on_conflict_do_update(index_elements=["participant_id"], set_=again))


def keep(db: Connection, participant_id: str, until: int) -> None:
    """Extend the retention of a participant's identity, after their consent."""
    mine = identity.c.participant_id == participant_id
    db.execute(update(identity).where(mine, identity.c.erase_after < until).values(erase_after=until))


def of_study(db: Connection, study: str) -> list[Row]:
    """List the identities of a study that are still stored."""
    return every(db, select(identity).where(identity.c.study == study))


def find_person(db: Connection, participant_id: str) -> str | None:
    """Find a participant's id at the recruiter, while it is stored."""
    mine = select(identity.c.ext_person).where(identity.c.participant_id == participant_id)
    return db.execute(mine).scalar_one_or_none()


def erase(db: Connection, participant_id: str) -> None:
    """Erase a participant's identity."""
    db.execute(delete(identity).where(identity.c.participant_id == participant_id))


def erase_due(db: Connection, now: int) -> int:
    """Erase all identities whose retention time is over; return how many."""
    return db.execute(delete(identity).where(identity.c.erase_after <= now)).rowcount
