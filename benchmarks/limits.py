"""What limited a server under load, in words: told from who was busy, not guessed from the answers' times."""

from __future__ import annotations

import os
from dataclasses import dataclass

GOAL_MS = 300.0
BUSY = 0.85
"""Of one core: more than this leaves no room for bursts."""


@dataclass(frozen=True)
class Busy:
    """Processor time over wall time, in cores.

    Attributes
    ----------
    server, clients
        The whole process each. Both run Python, which computes on one core at a time.
    loop, writer
        Of the server: the thread that reads and answers requests, and the busiest other one, which is the writer.
    cores
        Of the machine.
    """

    server: float
    clients: float
    loop: float
    writer: float
    cores: int = os.cpu_count() or 1

    def limit(self, p99_ms: float) -> str:
        """What stood in the way of a shorter wait."""
        parts = f"event loop {self.loop:.2f}, writer {self.writer:.2f} of it"
        if self.clients > BUSY:
            return f"the clients: the process that imitates them used {self.clients:.2f} of one core"
        if self.server > BUSY:
            return f"the server's processor: {self.server:.2f} cores ({parts}), where Python has one"
        if self.server + self.clients > BUSY * self.cores:
            used = self.server + self.clients
            return f"the machine: server and clients used {used:.2f} of {self.cores} cores, and a browser was open"
        if p99_ms < GOAL_MS:
            return f"nothing yet: the server used {self.server:.2f} cores ({parts}), the clients {self.clients:.2f}"
        return (
            f"waiting, not computing: the server used {self.server:.2f} cores ({parts}), the clients "
            f"{self.clients:.2f}; look at the disk's flushes and at what else runs here"
        )
