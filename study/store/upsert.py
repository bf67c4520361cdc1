"""INSERT ... ON CONFLICT, which both databases have and SQLAlchemy spells by dialect."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def insert_or(db: Connection, table: Table) -> Any:
    """An insert that can say what happens where a row is there already."""
    return (postgresql.insert if db.dialect.name == "postgresql" else sqlite.insert)(table)
