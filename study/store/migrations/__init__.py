"""The schema's versions: applied in order, each in one transaction, recorded with the hash of its text."""

from __future__ import annotations

import hashlib
import time
from typing import Any

from sqlalchemy import Connection, Engine, text

from study.store.errors import StoreError
from study.store.migrations import v0001_initial, v0002_road

MIGRATIONS: tuple[tuple[str, ...], ...] = (v0001_initial.STATEMENTS, v0002_road.STATEMENTS)

_RECORD = """
CREATE TABLE IF NOT EXISTS schema_version(
  version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL, sha256 TEXT NOT NULL) STRICT
"""


def migrate(engine: Engine, migrations: tuple[tuple[str, ...], ...] = MIGRATIONS) -> int:
    """Bring the database to the newest version and return it; a newer database than this code is refused."""
    for version, statements in enumerate(migrations, 1):
        with engine.connect() as connection:
            # A table that others refer to can only be made anew with the rule off, and that only between
            # transactions (sqlite.org/lang_altertable.html#otheralter); every row is checked before the commit.
            driver: Any = connection.connection.dbapi_connection
            driver.execute("PRAGMA foreign_keys=OFF")
            try:
                with connection.begin():
                    if version not in _applied(connection, len(migrations)):
                        _apply(connection, version, statements)
            finally:
                driver.execute("PRAGMA foreign_keys=ON")
    return len(migrations)


def fingerprint(statements: tuple[str, ...]) -> str:
    """SHA-256 of a migration's text."""
    return hashlib.sha256("\n".join(statements).encode()).hexdigest()


def _applied(connection: Connection, known: int) -> set[int]:
    connection.exec_driver_sql(_RECORD)
    versions = set(connection.execute(text("SELECT version FROM schema_version")).scalars())
    if versions and max(versions) > known:
        raise StoreError(
            f"The database has schema version {max(versions)}, this Foretell knows {known}. Use a newer Foretell."
        )
    return versions


def _apply(connection: Connection, version: int, statements: tuple[str, ...]) -> None:
    for statement in statements:
        connection.exec_driver_sql(statement)
    if connection.exec_driver_sql("PRAGMA foreign_key_check").first() is not None:
        raise StoreError(f"The database does not survive schema version {version}. Restore it from a backup.")
    connection.execute(
        text("INSERT INTO schema_version(version, applied_at, sha256) VALUES (:version, :at, :sha256)"),
        {"version": version, "at": time.time_ns(), "sha256": fingerprint(statements)},
    )
