"""The schema's versions: applied in order, all in one transaction, recorded with the hash of their texts."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, text

from study.store.errors import StoreError
from study.store.migrations import (
    v0001_initial,
    v0002_road,
    v0003_pause,
    v0004_access,
    v0005_fewer_pages,
    v0006_members,
    v0007_key,
    v0008_steps,
    v0009_scales,
    v0010_places,
    v0011_texts,
    v0012_sittings,
)
from study.store.migrations.translation import Migrations, Statements, translate

__all__ = ["MIGRATIONS", "Migrations", "fingerprint", "migrate"]

_VERSIONS = (
    v0001_initial,
    v0002_road,
    v0003_pause,
    v0004_access,
    v0005_fewer_pages,
    v0006_members,
    v0007_key,
    v0008_steps,
    v0009_scales,
    v0010_places,
    v0011_texts,
    v0012_sittings,
)
MIGRATIONS: Migrations = {
    "sqlite": tuple(version.STATEMENTS for version in _VERSIONS),
    "postgresql": tuple(version.POSTGRESQL for version in _VERSIONS),
}

_RECORD = """
CREATE TABLE IF NOT EXISTS schema_version(
  version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL, sha256 TEXT NOT NULL) STRICT
"""


def migrate(engine: Engine, migrations: Migrations = MIGRATIONS, schema: str = "public") -> int:
    """Migrate the database to the newest version and return that; refuse a database newer than this code."""
    mine = migrations[engine.dialect.name]
    with engine.connect() as connection, _rebuilding(connection), connection.begin():
        applied = _applied(connection, len(mine), schema)
        for version, statements in enumerate(mine, 1):
            if version not in applied:
                _apply(connection, version, statements)
    return len(mine)


def fingerprint(statements: Statements) -> str:
    """Hash a migration's text (SHA-256)."""
    return hashlib.sha256("\n".join(statements).encode()).hexdigest()


@contextmanager
def _rebuilding(connection: Connection) -> Iterator[None]:
    """Rebuild tables with foreign-key checks off: SQLite changes a table only by replacing it.

    The setting changes only between transactions (sqlite.org/lang_altertable.html#otheralter); every row is checked
    before the commit.
    """
    if connection.dialect.name != "sqlite":
        yield
        return
    driver: Any = connection.connection.dbapi_connection
    driver.execute("PRAGMA foreign_keys=OFF")
    try:
        yield
    finally:
        driver.execute("PRAGMA foreign_keys=ON")


def _applied(connection: Connection, known: int, schema: str) -> set[int]:
    record: Statements = (_RECORD,)
    if connection.dialect.name == "postgresql":
        record = (f"CREATE SCHEMA IF NOT EXISTS {schema}", *translate(record))
    for statement in record:
        connection.exec_driver_sql(statement)
    versions = set(connection.execute(text("SELECT version FROM schema_version")).scalars())
    if versions and max(versions) > known:
        raise StoreError(
            f"The database has schema version {max(versions)}, this Foretell knows {known}. Use a newer Foretell."
        )
    return versions


def _apply(connection: Connection, version: int, statements: Statements) -> None:
    for statement in statements:
        connection.exec_driver_sql(statement)
    sqlite = connection.dialect.name == "sqlite"
    if sqlite and connection.exec_driver_sql("PRAGMA foreign_key_check").first() is not None:
        raise StoreError(f"The migration of the database to schema version {version} failed. Restore it from a backup.")
    connection.execute(
        text("INSERT INTO schema_version(version, applied_at, sha256) VALUES (:version, :at, :sha256)"),
        {"version": version, "at": time.time_ns(), "sha256": fingerprint(statements)},
    )
