"""PostgreSQL: several processes, also on several machines, behind one address."""

from __future__ import annotations

import zlib
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine
from sqlalchemy.exc import DBAPIError

from study.store.database.transactions import begin_with
from study.store.errors import StoreError

ERRORS: tuple[type[Exception], ...] = ()

# lock_timeout: how long a writer waits for the previous one. idle_in_transaction_session_timeout: a machine that
# vanishes inside a transaction must not block the others for ever.
_SETTINGS = {"synchronous_commit": "on", "lock_timeout": "30s", "idle_in_transaction_session_timeout": "60s"}
_PATIENCE = {"connect_timeout": 5, "keepalives_idle": 10, "keepalives_interval": 5, "tcp_user_timeout": 20_000}
_IN_TRANSACTION = 2  # libpq's PQTRANS_INTRANS


def create_write_engine(url: URL, schema: str) -> Engine:
    """Create an engine whose transactions wait for each other, in whichever process they run.

    The lock is taken before anything is read, so the next quota place and the end of the chain are current. It is
    the database's own and ends with the transaction, also when a process is killed.
    """
    engine = _engine(url, schema, {}, isolation_level="READ COMMITTED", pool_size=1, max_overflow=1)
    key = zlib.crc32(f"foretell {schema}".encode())
    begin_with(engine, f"SELECT pg_advisory_xact_lock({key})")
    return engine


def create_read_engine(url: URL, schema: str) -> Engine:
    """Create an engine whose connections cannot write and see one state during a transaction."""
    readonly = {"default_transaction_read_only": "on"}
    return _engine(url, schema, readonly, isolation_level="REPEATABLE READ", pool_size=4, max_overflow=12)


def remedy(_: DBAPIError) -> str:
    """Suggest a remedy for an error at opening."""
    return "Start it, or correct the address, the name and the password."


def fault(connection: Connection) -> str | None:
    """Describe a fault of the server's settings, if there is one."""
    if connection.exec_driver_sql("SELECT pg_is_in_recovery()").scalar_one():
        return "is a copy that cannot be written. Name the primary server."
    if connection.exec_driver_sql("SHOW fsync").scalar_one() != "on":
        return "would lose acknowledged responses in a power cut. Set fsync = on in postgresql.conf."
    return None


def copy_log(_: Engine) -> None:
    """Do nothing: the server does it."""


def empty_log(_: Engine) -> bool:
    """Leave the log to the server, which reuses it by itself; VACUUM does the rest."""
    return True


def identify_files(_: Engine) -> tuple[object, ...]:
    """Return nothing: the files are the server's."""
    return ()


def rescue(_: Connection) -> str:
    """Do nothing: the files are the server's."""
    return ""


def in_transaction(driver: Any) -> bool:
    """Tell whether the connection and its transaction are intact."""
    return not driver.closed and int(driver.info.transaction_status) == _IN_TRANSACTION


def _engine(url: URL, schema: str, settings: dict[str, str], **pool: Any) -> Engine:
    options = " ".join(f"-c {key}={value}" for key, value in {"search_path": schema, **_SETTINGS, **settings}.items())
    # Each connection is tested before use, so the first request after a restart of the server succeeds.
    try:
        return create_engine(
            url.set(drivername="postgresql+psycopg"),
            connect_args={**_PATIENCE, "options": options},
            pool_pre_ping=True,
            **pool,
        )
    except ModuleNotFoundError:
        raise StoreError(
            "PostgreSQL needs a driver. Run: python -m pip install -r requirements-postgresql.txt"
        ) from None
