"""The database: one writer, many readers. The only package that knows SQLAlchemy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, TimeoutError

from study.store import engine
from study.store.errors import StoreError
from study.store.migrations import MIGRATIONS, Migrations, migrate
from study.store.writer import Writer

__all__ = ["Connection", "Store", "StoreError"]

T = TypeVar("T")


class Store:
    """An open database.

    Parameters
    ----------
    url
        ``sqlite:////absolute/path.db``, made if missing, or ``postgresql://user:password@host/database``.
    migrations
        What makes its tables.
    schema
        Where they are made in PostgreSQL; an SQLite file has but one.

    Raises
    ------
    StoreError
        The database is none, is damaged, away, not writable, or made by a newer Foretell.
    """

    def __init__(self, url: str, migrations: Migrations = MIGRATIONS, schema: str = "public") -> None:
        self._writing = engine.create_write_engine(url, schema)
        engine.check(self._writing)
        migrate(self._writing, migrations, schema)
        self.erased = not engine.empty_log(self._writing)  # a process that was killed may have left erased bytes there
        self._reading = engine.create_read_engine(url, schema)
        self._writer = Writer(self._writing)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in the writer's transaction; when this returns, its result is on the disk."""
        return self._writer.run(work)

    def erase(self, work: Callable[[Connection], T]) -> T:
        """Run `work`, which erases something, as `write` does; then leave none of it in the database's log either."""
        result = self.write(work)
        self.erased = True
        self.forget_erased()
        return result

    def forget_erased(self) -> bool:
        """Empty the log if something was erased since; False while a reader of an older state prevents it."""
        if self.erased:
            self.erased = not engine.empty_log(self._writing)
        return not self.erased

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` on a connection of its own that cannot write; it sees one state of the database."""
        try:
            with self._reading.begin() as connection:
                return work(connection)
        except DBAPIError as error:
            raise StoreError(f"The database cannot be read ({engine.format_error(error)}). Try again.") from error
        except TimeoutError:
            raise StoreError("The database has too much to read at once. Try again.") from None

    def close(self) -> None:
        """Commit what is queued and let go of the database."""
        self._writer.close()
        self._reading.dispose()
        self._writing.dispose()
