"""The database: one writer, many readers. The only package that knows SQLAlchemy."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, TimeoutError

from study.store.database import engine
from study.store.database.engine import Place, find_file
from study.store.database.writer import Writer
from study.store.errors import StoreError
from study.store.migrations import MIGRATIONS, Migrations, migrate

__all__ = ["Connection", "Place", "Store", "StoreError", "find_file"]

T = TypeVar("T")


class Store:
    """An open database.

    Parameters
    ----------
    place
        The file of an SQLite database, or ``sqlite:////absolute/path.db``, either created if missing; or
        ``postgresql://user:password@host/database``.
    migrations
        The migrations that create its tables.
    schema
        Schema of the tables in PostgreSQL; an SQLite file has only one.

    Raises
    ------
    StoreError
        Not a database, damaged, not reachable, not writable, or from a newer version of Foretell.
    """

    def __init__(self, place: Place, migrations: Migrations = MIGRATIONS, schema: str = "public") -> None:
        self._writing = engine.create_write_engine(place, schema)
        engine.check(self._writing)
        migrate(self._writing, migrations, schema)
        self.erased = not engine.empty_log(self._writing)  # a killed process may have left erased bytes there
        self._reading = engine.create_read_engine(place, schema)
        self._writer = Writer(self._writing)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in the writer's transaction; when this returns, its result is on disk."""
        return self._writer.run(work)

    def submit(self, work: Callable[[Connection], T]) -> Future[T]:
        """Queue `work` for the writer's transaction; the future has its result when that is on disk."""
        return self._writer.submit(work)

    def erase(self, work: Callable[[Connection], T]) -> T:
        """Run `work`, which erases something, as `write` does; then clear the database's log of it too."""
        result = self.write(work)
        self.erased = True
        self.forget_erased()
        return result

    def forget_erased(self) -> bool:
        """Empty the log if something was erased since; return False while a reader of an older state prevents it."""
        if self.erased:
            self.erased = not engine.empty_log(self._writing)
        return not self.erased

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` on a read-only connection of its own, which sees a single state of the database."""
        try:
            with self._reading.begin() as connection:
                return work(connection)
        except DBAPIError as error:
            raise StoreError(f"The database cannot be read ({engine.format_error(error)}). Try again.") from error
        except TimeoutError:
            raise StoreError("The database is busy with other reads. Try again.") from None

    @property
    def fault(self) -> str | None:
        """Say why nothing is stored any more, if so."""
        return self._writer.fault

    def refuse_writes(self, reason: str) -> None:
        """Store nothing from now on: `reason` says why and what to do."""
        self._writer.refuse(reason)

    def copy_log(self) -> None:
        """Copy the log of what was written into the database, so that the writer need not stop for it."""
        engine.copy_log(self._reading)

    def close(self) -> None:
        """Commit what is queued and close the database."""
        self._writer.close()
        self._reading.dispose()
        self._writing.dispose()
