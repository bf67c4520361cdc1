"""Query results as plain dictionaries."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection
from sqlalchemy.sql.expression import Executable

Row = dict[str, Any]


def every(db: Connection, query: Executable) -> list[Row]:
    """All rows."""
    return [{str(key): value for key, value in row.items()} for row in db.execute(query).mappings()]


def at_most_one(db: Connection, query: Executable) -> Row | None:
    """The only row, or None; more than one is an error."""
    row = db.execute(query).mappings().one_or_none()
    return None if row is None else {str(key): value for key, value in row.items()}
