"""The database: one writer, many readers. The only package that knows SQLAlchemy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from study.store import engine
from study.store.errors import StoreError
from study.store.migrations import MIGRATIONS, migrate
from study.store.writer import Writer

__all__ = ["Connection", "Store", "StoreError"]

T = TypeVar("T")


class Store:
    """An open database.

    Parameters
    ----------
    url
        ``sqlite:////absolute/path.db``; the file is made if missing.
    migrations
        What makes its tables.

    Raises
    ------
    StoreError
        The file is no database, is damaged, not writable, or made by a newer Foretell.
    """

    def __init__(self, url: str, migrations: tuple[tuple[str, ...], ...] = MIGRATIONS) -> None:
        self._writing = engine.writing(url)
        engine.check(self._writing, url)
        migrate(self._writing, migrations)
        self._reading = engine.reading(url)
        self._writer = Writer(self._writing)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in the writer's transaction; when this returns, its result is on the disk."""
        return self._writer.run(work)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` on a connection of its own that cannot write; it sees one state of the database."""
        try:
            with self._reading.begin() as connection:
                return work(connection)
        except DBAPIError as error:
            raise StoreError(f"The database cannot be read ({error.orig}). Try again.") from error

    def close(self) -> None:
        """Commit what is queued and let go of the file."""
        self._writer.close()
        self._reading.dispose()
        self._writing.dispose()
