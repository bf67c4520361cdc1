"""INSERT ... ON CONFLICT, which both databases support and SQLAlchemy spells by dialect."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def insert_or(db: Connection | str, table: Table) -> Any:
    """Create an insert, for a connection or a dialect by name, that can handle conflicts."""
    dialect = db if isinstance(db, str) else db.dialect.name
    return (postgresql.insert if dialect == "postgresql" else sqlite.insert)(table)
