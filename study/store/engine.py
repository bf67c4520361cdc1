"""Connections: SQLite with the settings that keep an acknowledged answer through a crash."""

from __future__ import annotations

import sqlite3
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DatabaseError

from study.store.errors import StoreError

# synchronous=FULL: NORMAL may lose acknowledged commits at power loss (sqlite.org/pragma.html#pragma_synchronous).
# secure_delete: what a person withdrew is overwritten, not only unlinked.
_PRAGMAS = ("busy_timeout=30000", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON")


def writing(url: str) -> Engine:
    """Engine whose transactions take the write lock at once.

    A transaction that begins by reading and writes later can be refused as busy whatever the timeout.
    """
    return _engine(url, _PRAGMAS, "BEGIN IMMEDIATE")


def reading(url: str) -> Engine:
    """Engine whose connections cannot write."""
    return _engine(url, (*_PRAGMAS, "query_only=ON"), "BEGIN")


def check(engine: Engine, url: str) -> None:
    """Refuse a database that is not one, is damaged, or cannot be written."""
    try:
        with engine.begin() as connection:
            verdict = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
            connection.exec_driver_sql("PRAGMA user_version = 1")  # the smallest write there is
    except DatabaseError as error:
        raise StoreError(
            f"{url} cannot be used as the database ({error.orig}). Name a writable file, or move this one away."
        ) from None
    if verdict != "ok":
        raise StoreError(f"{url} is damaged ({verdict}). Restore it from a backup.")


def _engine(url: str, pragmas: tuple[str, ...], begin: str) -> Engine:
    try:
        backend = make_url(url).get_backend_name()
    except ArgumentError:
        raise StoreError(f"{url!r} is not a database URL. Use sqlite:////absolute/path/foretell.db.") from None
    if backend != "sqlite":
        raise StoreError(f"The database {backend!r} is not supported yet. Use sqlite:////absolute/path/foretell.db.")
    engine = create_engine(url)

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _: Any) -> None:
        connection.isolation_level = None  # transactions are begun below, never by the driver
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin_transaction(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine
