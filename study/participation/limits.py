"""Rate limits for each address: kept in this process's memory, never stored."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

MOST_SOURCES = 20_000
"""Sources that are remembered; beyond it those are forgotten that have not asked for longest."""


class Allowance:
    """A token bucket for each source: `burst` requests at once, then `per_minute` (thread-safe).

    A source is a keyed hash of an address, so the memory of this process does not list addresses either.
    """

    def __init__(self, burst: int, per_minute: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst, self._per_second, self._clock = float(burst), per_minute / 60, clock
        self._left: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def take(self, source: str) -> bool:
        """Take one request from what is left for this source; False where nothing is left."""
        now = self._clock()
        with self._lock:
            left, at = self._left.pop(source, (self._burst, now))
            left = min(self._burst, left + (now - at) * self._per_second)
            allowed = left >= 1
            self._left[source] = (left - allowed, now)  # put at the end: the first key is the one unused for longest
            if len(self._left) > MOST_SOURCES:
                del self._left[next(iter(self._left))]
        return allowed
