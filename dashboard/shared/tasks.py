"""Work that a page asks for, as `dashboard.shared.live` wants it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from core.types import Progress
from dashboard.shared.jobs import Job, pool


@dataclass(frozen=True)
class Task:
    """What ``work`` makes, under the ``key`` of all it depends on; ``takes`` is about how long, s, where known."""

    key: str
    work: Callable[[Progress], Any]
    takes: float | None = None

    @property
    def seconds(self) -> float | None:
        """About how long it takes; 0 where it was begun already."""
        return 0.0 if pool().find(self.key) else self.takes

    def compute(self, progress: Progress) -> Any:
        """Do the work."""
        return self.work(progress)

    def ask(self) -> Job:
        """The job that does it, or has done it."""
        return pool().ask(self.key, self.compute, self.takes or 0.0)
