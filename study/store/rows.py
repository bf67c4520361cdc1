"""Query results as plain dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.sql.expression import Executable

Row = dict[str, Any]


def every(db: Connection, query: Executable, values: Mapping[str, Any] | None = None) -> list[Row]:
    """Return all rows; `values` are the query's own parameters."""
    found = db.execute(query, values)
    names = list(map(str, found.keys()))
    return [dict(zip(names, row, strict=True)) for row in found]


def at_most_one(db: Connection, query: Executable, values: Mapping[str, Any] | None = None) -> Row | None:
    """Return the only row, or None; more than one is an error."""
    row = db.execute(query, values).mappings().one_or_none()
    return None if row is None else {str(key): value for key, value in row.items()}
