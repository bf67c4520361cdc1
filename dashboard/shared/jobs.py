"""Background jobs of the pages: a few threads for all sessions, each piece of work once, with progress and cancel.

Results are kept, so that a page that was left finds them. Nothing here depends on Streamlit: pages poll.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Literal

from core.errors import ForetellError
from core.types import Progress
from data.errors import DataError

WORKERS = 2
"""One long piece of work must not keep the short ones waiting."""
MOST_WAITING = 200
MOST_KEPT = 300
"""Finished jobs that are kept: a heatmap of 224 px with its standard error takes 0.4 MB."""
WANTED_S = 10.0
"""A job that no page has asked for in this time waits until there is nothing else to do."""
GOODBYE_S = 5.0

State = Literal["waiting", "running", "done", "failed", "cancelled"]
log = logging.getLogger(__name__)


class Cancellation(Exception):
    """Raised out of a progress report, to end the work."""


class Job:
    """One piece of work.

    Attributes
    ----------
    key
        What its result depends on, as one SHA-256.
    state, result, error
        The state; the result, or the error message.
    progress
        (done, total, what) of the last report; before the first one ``what`` it is, in words.
    """

    def __init__(self, key: str, work: Callable[[Progress], Any], seconds: float, what: str = "") -> None:
        self.key, self.seconds = key, seconds
        self.state: State = "waiting"
        self.result: Any = None
        self.error = ""
        self.progress = (0, 0, what)
        self.wanted = self._began = time.monotonic()
        self._work: Callable[[Progress], Any] | None = work
        self._ended, self._stop = threading.Event(), threading.Event()

    @property
    def has_ended(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self._ended.is_set()

    @property
    def share(self) -> float:
        """Return the share that is done, 0 to 1."""
        done, total, _ = self.progress
        return min(done / total, 1.0) if total else float(self.state == "done")

    @property
    def remaining_s(self) -> float | None:
        """Estimate the remaining time from the time so far; None before the first report."""
        if self.state != "running" or not self.share:
            return None
        return (time.monotonic() - self._began) * (1 / self.share - 1)

    def wait(self, seconds: float) -> bool:
        """Wait no longer than this; whether it has ended."""
        return self._ended.wait(seconds)

    def cancel(self) -> None:
        """End it at its next report, or before it begins."""
        self._stop.set()

    def run(self) -> None:
        """Do the work in this thread."""
        self.state, self._began = "running", time.monotonic()
        try:
            self._check()
            assert self._work is not None
            self.result = self._work(self._report)
            self.state = "done"
        except Cancellation:
            self.state = "cancelled"
        except (ForetellError, DataError) as error:
            self.state, self.error = "failed", str(error)
        except Exception as error:
            log.exception("a job failed")
            self.state, self.error = "failed", f"Unexpected {type(error).__name__}: {error}"
        finally:
            self._work = None  # the inputs need not stay in memory as long as the result
            self._ended.set()

    def _report(self, done: int, total: int, what: str) -> None:
        self._check()
        self.progress = (done, total, what)

    def _check(self) -> None:
        if self._stop.is_set():
            raise Cancellation


class Pool:
    """The threads and what they have done and are to do."""

    def __init__(self, workers: int = WORKERS) -> None:
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._changed, self._closed = threading.Condition(), False
        self._threads = [threading.Thread(target=self._serve, name=f"job-{k}", daemon=True) for k in range(workers)]
        for thread in self._threads:
            thread.start()

    def ask(self, key: str, work: Callable[[Progress], Any], seconds: float = 0.0, what: str = "") -> Job:
        """Return the job of this key, started now if there is none.

        ``seconds`` is about how long it will take, ``what`` says what it does until it says more itself.

        Raises
        ------
        ForetellError
            Too much is waiting.
        """
        with self._changed:
            job = self._jobs.get(key)
            if job is None or job.state == "cancelled":
                self._make_room()
                job = self._jobs[key] = Job(key, work, seconds, what)
                self._changed.notify()
            self._jobs.move_to_end(key)
            job.wanted = time.monotonic()
            return job

    def find(self, key: str) -> Job | None:
        """Find the job of this key, without starting one."""
        return self._jobs.get(key)

    def cancel(self, key: str) -> None:
        """End this job and forget it."""
        with self._changed:
            job = self._jobs.get(key)
            if job is None or job.has_ended:
                return
            job.cancel()
            if job.state == "waiting":
                job.run()  # ends at once

    def forget(self, key: str) -> None:
        """Drop a finished job so that the next request restarts it."""
        with self._changed:
            if (job := self._jobs.get(key)) is not None and job.has_ended:
                del self._jobs[key]

    def close(self) -> None:
        """End everything: a thread that still computes when Python ends would tear the process down."""
        with self._changed:
            self._closed = True
            for job in self._jobs.values():
                job.cancel()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(GOODBYE_S)

    def _make_room(self) -> None:
        waiting = [job for job in self._jobs.values() if job.state == "waiting"]
        if len(waiting) >= MOST_WAITING:
            oldest = min(waiting, key=lambda job: job.wanted)
            if time.monotonic() - oldest.wanted < WANTED_S:
                raise ForetellError(f"{MOST_WAITING} jobs are waiting already. Stop some, or try again later.")
            del self._jobs[oldest.key]
        ended = [key for key, job in self._jobs.items() if job.has_ended]
        for key in ended[: max(0, len(ended) - MOST_KEPT + 1)]:
            del self._jobs[key]

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._next() is not None)
                job = self._next()
                if self._closed or job is None:
                    return
                job.state = "running"
            job.run()

    def _next(self) -> Job | None:
        """Return the next waiting job: first those a page shows, then the shortest."""
        now = time.monotonic()
        waiting = [job for job in self._jobs.values() if job.state == "waiting"]
        return min(waiting, key=lambda job: (now - job.wanted > WANTED_S, job.seconds), default=None)


_lock = threading.Lock()
_pools: list[Pool] = []


def pool() -> Pool:
    """Return the one pool of this process, made at the first call."""
    with _lock:
        if not _pools:
            _pools.append(Pool())
            atexit.register(_pools[0].close)
        return _pools[0]
