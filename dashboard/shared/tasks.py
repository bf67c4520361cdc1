"""Work that a page asks for, as `dashboard.shared.live` expects it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from core.types import Progress
from dashboard.shared.jobs import Job, pool


@dataclass(frozen=True)
class Task:
    """What ``compute`` returns, under the ``key`` of everything it depends on.

    ``estimate`` returns about how many seconds it takes, or None; it is called only before the work has started.
    ``what`` says what it does until its first report of progress.
    """

    key: str
    compute: Callable[[Progress], Any]
    estimate: Callable[[], float | None] = lambda: None
    what: str = ""

    @property
    def seconds(self) -> float | None:
        """Return about how long it takes; 0 if it was started before, None if that is unknown."""
        return 0.0 if pool().find(self.key) else self.estimate()

    def ask(self) -> Job:
        """Return the job that does the work, or has done it."""
        return pool().ask(self.key, self.compute, self.seconds or 0.0, self.what)
