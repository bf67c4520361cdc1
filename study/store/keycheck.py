"""The check value of the workspace's key: codes and links made with another key would all be invalid."""

from __future__ import annotations

from sqlalchemy import Connection, select

from study.store.tables import key_check, session
from study.store.upsert import insert_or


def load(db: Connection) -> str | None:
    """Return the check value; None where none was stored yet."""
    return db.execute(select(key_check.c.value)).scalar_one_or_none()


def keep(db: Connection, value: str) -> None:
    """Store the check value."""
    db.execute(insert_or(db, key_check).values({"id": 1, "value": value}).on_conflict_do_nothing())


def list_codes(db: Connection) -> list[tuple[str, str]]:
    """List the sessions with the hashes of their private codes, which the key makes too."""
    rows = db.execute(select(session.c.session_id, session.c.code_hash).where(session.c.code_hash.is_not(None)))
    return [(row.session_id, row.code_hash) for row in rows]
