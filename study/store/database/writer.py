"""A writer thread: jobs are queued and committed in groups, and each result is returned after the commit.

Fifty threads that each commit with synchronous=FULL wait for fifty disk flushes; one writer needs a single flush
for all jobs queued meanwhile.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from study.store.database.engine import format_error, identify_files, in_transaction, rescue
from study.store.errors import StoreError

MOST_JOBS = 256
LONGEST_S = 0.04
"""How long a group may take where more jobs wait: beginning and committing cost as much as a job."""
ROLLED_BACK = "The database rolled back a group of writes. Check its disk and try again."

VANISHED = "The database's files were deleted or replaced while they are in use: nothing is stored any more."

T = TypeVar("T")
log = logging.getLogger(__name__)


class _Job:
    """Work for the writer's transaction, and the future of its result."""

    def __init__(self, work: Callable[[Connection], Any]) -> None:
        self.work = work
        self.future: Future[Any] = Future()
        self.future.set_running_or_notify_cancel()  # who waits may leave; what was sent is stored all the same
        self.result: Any = None
        self.error: Exception | None = None

    def run(self, connection: Connection) -> None:
        """Do the work in its own savepoint: a failing job undoes itself and no other.

        The statements are sent as they are: SQLAlchemy's nested transactions compile them for every job.
        """
        try:
            connection.exec_driver_sql("SAVEPOINT job")
            self.result = self.work(connection)
            connection.exec_driver_sql("RELEASE SAVEPOINT job")
        except Exception as error:
            self.error = error
            _undo_job(connection)

    def settle(self, error: Exception | None) -> None:
        """Resolve the future; `error` is that of the whole group."""
        error = error or self.error
        if error is None:
            self.future.set_result(self.result)
        elif isinstance(error, DBAPIError):
            self.future.set_exception(StoreError(f"The database refused a write ({format_error(error)}). Try again."))
        else:
            self.future.set_exception(error)


class Writer:
    """The only writer of this process to `engine`; writers of other processes take turns with it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._files = identify_files(engine)
        self._fault: str | None = None
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._loop, name="foretell-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Connection], T]) -> Future[T]:
        """Queue `work`; the future is resolved after the commit, so its result is on disk."""
        job = _Job(work)
        with self._lock:
            if self._closed.is_set():
                raise StoreError("The database is closed. Start the server again.")
            if self._fault is not None:
                raise StoreError(self._fault)
            self._jobs.put(job)
        return job.future

    def run(self, work: Callable[[Connection], T]) -> T:
        """Queue `work` and wait for its commit."""
        return self.submit(work).result()

    @property
    def fault(self) -> str | None:
        """Say why nothing is stored any more, if so."""
        return self._fault

    def refuse(self, reason: str) -> None:
        """Refuse all jobs from now on; the first reason stays."""
        if self._fault is None:
            self._fault = reason
            log.critical("%s", reason)

    def close(self) -> None:
        """Commit what is queued and stop."""
        with self._lock:
            if self._closed.is_set():
                return
            self._closed.set()
            self._jobs.put(None)
        self._thread.join()

    def _loop(self) -> None:
        while (first := self._jobs.get()) is not None:
            group: list[_Job] = []
            error: Exception | None = None
            try:
                with self._engine.connect() as connection:
                    with connection.begin():
                        for job in self._gather_jobs(first, group):
                            job.run(connection)
                            _still_open(connection)
                    self._check_files(connection)  # before anything is acknowledged
            except Exception as failure:
                error = failure
            if self._fault is not None:
                error = StoreError(self._fault)
            for job in group or [first]:
                job.settle(error)

    def _check_files(self, connection: Connection) -> None:
        """Refuse all jobs from now on if what was committed lies in files that were deleted or replaced; save them."""
        if self._fault is None and identify_files(self._engine) != self._files:
            self.refuse(f"{VANISHED} {rescue(connection)}")

    def _gather_jobs(self, first: _Job, group: list[_Job]) -> Iterator[_Job]:
        """Gather `first` and the jobs queued meanwhile, up to the limits, without waiting for more."""
        deadline = time.monotonic() + LONGEST_S
        job: _Job | None = first
        while job is not None:
            group.append(job)
            yield job
            if len(group) >= MOST_JOBS or time.monotonic() > deadline:
                return
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return
        self._jobs.put(None)  # asked to stop: this group is the last


def _undo_job(connection: Connection) -> None:
    """Undo a failed job; raise where that is impossible, because the whole transaction ended or may hold half of it."""
    try:
        connection.exec_driver_sql("ROLLBACK TO SAVEPOINT job")
        connection.exec_driver_sql("RELEASE SAVEPOINT job")
    except SQLAlchemyError:
        raise StoreError(ROLLED_BACK) from None


def _still_open(connection: Connection) -> None:
    """Raise if an error ended the whole transaction (full disk, lost server), which loses all earlier jobs too.

    Without this the rest of the group would be written outside any transaction and the lost jobs acknowledged.
    """
    if not in_transaction(connection):
        raise StoreError(ROLLED_BACK)
