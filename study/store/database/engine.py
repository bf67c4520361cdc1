"""Connections: the database that a URL names, and the guarantees of both kinds of database.

A writing engine's transactions are serialised, also between processes: each sees all that was committed
before, and no other writes meanwhile. A reading engine's cannot write, and see one state of the database.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from types import ModuleType

from sqlalchemy import Connection, Engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, DBAPIError

from study.store.database import postgresql, sqlite
from study.store.errors import StoreError

KINDS: dict[str, ModuleType] = {"sqlite": sqlite, "postgresql": postgresql}
EXAMPLES = "sqlite:////absolute/path/foretell.db or postgresql://user:password@host/database"


Place = str | Path
"""A database: its URL, or the file of an SQLite database, whose name may have any character."""


def parse_place(place: Place) -> URL:
    """Return the URL of a database of a supported kind."""
    if isinstance(place, Path):
        return URL.create("sqlite", database=str(place))
    try:
        made = make_url(place)
    except ArgumentError:
        raise StoreError(f"{place!r} is not a database URL. Use {EXAMPLES}.") from None
    if made.get_backend_name() not in KINDS:
        raise StoreError(f"The database {made.get_backend_name()!r} is not supported. Use {EXAMPLES}.")
    return made


def find_file(place: Place) -> Path | None:
    """Return the file of an SQLite database; None for a server's."""
    made = parse_place(place)
    return Path(made.database or "") if made.get_backend_name() == "sqlite" else None


def create_write_engine(place: Place, schema: str = "public") -> Engine:
    """Create an engine whose transactions exclude all other writers; a missing SQLite file is created."""
    made = parse_place(place)
    engine: Engine = KINDS[made.get_backend_name()].create_write_engine(made, schema)
    return engine


def create_read_engine(place: Place, schema: str = "public") -> Engine:
    """Create an engine whose connections cannot write."""
    made = parse_place(place)
    engine: Engine = KINDS[made.get_backend_name()].create_read_engine(made, schema)
    return engine


def check(engine: Engine) -> None:
    """Refuse a database that is damaged, not writable, or no database."""
    shown = engine.url.render_as_string(hide_password=True)
    try:
        with engine.begin() as connection:
            fault = KINDS[engine.dialect.name].fault(connection)
    except DatabaseError as error:
        remedy = KINDS[engine.dialect.name].remedy(error)
        raise StoreError(f"{shown} cannot be used as the database ({format_error(error)}). {remedy}") from None
    if fault is not None:
        raise StoreError(f"{shown} {fault}")


def empty_log(engine: Engine) -> bool:
    """Clear the database's log of erased data; return False if that has to be tried again."""
    try:
        return bool(KINDS[engine.dialect.name].empty_log(engine))
    except (DBAPIError, *KINDS[engine.dialect.name].ERRORS):
        return False


def copy_log(engine: Engine) -> None:
    """Copy the database's log into the database, where it has to be done by this program."""
    with suppress(DBAPIError, *KINDS[engine.dialect.name].ERRORS):
        KINDS[engine.dialect.name].copy_log(engine)


def identify_files(engine: Engine) -> tuple[object, ...]:
    """Identify the database's files at their paths: other values mean that they were deleted or replaced."""
    return tuple(KINDS[engine.dialect.name].identify_files(engine))


def rescue(connection: Connection) -> str:
    """Copy a database whose files were deleted or replaced to a new file, and say where; say it if that fails.

    The connection was opened before: a new one would not see those files.
    """
    return str(KINDS[connection.dialect.name].rescue(connection))


def in_transaction(connection: Connection) -> bool:
    """Tell whether the transaction is still open on this connection; some errors end it."""
    if connection.closed or connection.invalidated:
        return False
    return bool(KINDS[connection.dialect.name].in_transaction(connection.connection.dbapi_connection))


def format_error(error: DBAPIError) -> str:
    """Return the first line of the database's own message: later lines may quote the data sent."""
    return (str(error.orig).splitlines() or [type(error.orig).__name__])[0]
