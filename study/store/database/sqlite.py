"""SQLite with the settings that protect an acknowledged response from a crash."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from study.store.database.transactions import begin_with

ERRORS = (sqlite3.Error,)

# synchronous=FULL: NORMAL may lose acknowledged commits at power loss (sqlite.org/pragma.html#pragma_synchronous).
# secure_delete: withdrawn data is overwritten, not only unlinked; temp_store: no copy in a temporary file.
# page_size: a commit writes every page that it touches whole, and a response is a row of 400 bytes; of new databases
# only. wal_autocheckpoint: with 32 MB of log the writer copies it into the database, where `copy_log` has not.
_PRAGMAS = (
    "page_size=512", "busy_timeout=30000", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON",
    "secure_delete=ON", "temp_store=MEMORY", "wal_autocheckpoint=65536",
)  # fmt: skip
PATIENCE_MS = 1000
"""Time for which emptying the log may block writers while another process reads, e.g. for a backup."""


def create_write_engine(url: URL, _: str) -> Engine:
    """Create an engine whose transactions take the write lock at once.

    A transaction that reads first and writes later can be refused as busy, whatever the timeout. A missing file is
    created here, readable by its owner only, and nowhere else: a connection that is opened later must not bring back
    a file that was deleted.
    """
    with suppress(OSError):  # what is wrong with it, the first connection says
        os.close(os.open(url.database or "", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    return _engine(url, _PRAGMAS, "BEGIN IMMEDIATE")


def create_read_engine(url: URL, _: str) -> Engine:
    """Create an engine whose connections cannot write."""
    return _engine(url, (*_PRAGMAS, "query_only=ON"), "BEGIN")


def remedy(error: DBAPIError) -> str:
    """Suggest a remedy for an error at opening; a full disk is no reason to move a database."""
    code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return "Make room on its disk, or have the disk checked; leave this file and its -wal where they are."
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "Another program holds it. End that program, or try again."
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN):
        return "Let this user write the file and its folder, or name another file."
    return "It is not a database, or it is damaged. Restore it from a backup, or name another file."


def fault(connection: Connection) -> str | None:
    """Describe a fault of the file, if there is one."""
    verdict = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
    connection.exec_driver_sql("PRAGMA user_version = 1")  # the smallest possible write
    return None if verdict == "ok" else f"is damaged ({verdict}). Restore it from a backup."


def empty_log(engine: Engine) -> bool:
    """Move the write-ahead log into the database and truncate it; return False while an older state is being read.

    What was erased is overwritten in the database only; the log keeps the old pages. PASSIVE, FULL and RESTART
    leave its bytes in the file, TRUNCATE alone does not (sqlite.org/pragma.html#pragma_wal_checkpoint).
    """
    driver = engine.raw_connection()
    try:
        cursor = driver.cursor()
        cursor.execute(f"PRAGMA busy_timeout={PATIENCE_MS}")
        [(busy, _, _)] = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        cursor.execute("PRAGMA busy_timeout=30000")
    finally:
        driver.close()  # return to the pool
    return not busy


def copy_log(engine: Engine) -> None:
    """Copy the write-ahead log into the database next to the writer, who then has little left to copy at a commit.

    A PASSIVE checkpoint waits for nobody and holds up neither writers nor readers
    (sqlite.org/pragma.html#pragma_wal_checkpoint), and works on connections that cannot write.
    """
    driver = engine.raw_connection()
    try:
        driver.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    finally:
        driver.close()  # return to the pool


def identify_files(engine: Engine) -> tuple[tuple[int, int] | None, ...]:
    """Identify the database and its log by device and inode, while a connection is open.

    SQLite goes on writing to files that were deleted or replaced (sqlite.org/howtocorrupt.html#_unlinking_or_renaming_a
    _database_file_while_in_use): what it acknowledges then is in no file that a restart finds.
    """
    return tuple(_identify(Path(f"{engine.url.database}{end}")) for end in ("", "-wal"))


def rescue(connection: Connection) -> str:
    """Write the database, which this connection still reads, to a new file next to it, and say where."""
    path = Path(f"{connection.engine.url.database}")
    copy = path.with_name(f"{path.stem}-rescued-{time.strftime('%Y%m%d-%H%M%S')}{path.suffix}")
    driver: Any = connection.connection.dbapi_connection
    try:
        driver.execute("VACUUM INTO ?", (str(copy),))
        copy.chmod(0o600)
    except (*ERRORS, OSError) as error:
        return f"They could not be copied ({error}). Do not stop the server before its open files are saved."
    return (
        f"Everything stored before is in {copy}. Stop the server, move that file to {path}, delete {path.name}-wal "
        "and -shm, and start it again."
    )


def in_transaction(driver: sqlite3.Connection) -> bool:
    """Tell whether the transaction is open; SQLite ends it by itself, for example when the disk is full."""
    return driver.in_transaction


def _identify(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def _engine(url: URL, pragmas: tuple[str, ...], begin: str) -> Engine:
    address = f"{Path(url.database or '').resolve().as_uri()}?mode=rw"
    engine = create_engine(url, creator=lambda: sqlite3.connect(address, uri=True, check_same_thread=False))

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _: Any) -> None:
        connection.isolation_level = None  # transactions are begun below, never by the driver
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")

    begin_with(engine, begin)
    return engine
