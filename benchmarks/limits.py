"""The bottleneck of a server under load, found from processor time, not guessed from response times."""

from __future__ import annotations

import os
from dataclasses import dataclass

GOAL_MS = 300.0
BUSY = 0.85
"""Share of one core above which there is no room for bursts."""


@dataclass(frozen=True)
class Busy:
    """Processor time over wall time, in cores.

    Attributes
    ----------
    server, clients
        Whole processes. Both run Python, which computes on one core at a time.
    loop, writer
        Threads of the server: the event loop, which handles requests, and the busiest other one, the writer.
    cores
        Cores of the machine.
    """

    server: float
    clients: float
    loop: float
    writer: float
    cores: int = os.cpu_count() or 1

    def limit(self, p99_ms: float) -> str:
        """Name the bottleneck."""
        parts = f"event loop {self.loop:.2f}, writer {self.writer:.2f} of it"
        if self.clients > BUSY:
            return f"the clients: the process that imitates them used {self.clients:.2f} of one core"
        if self.server > BUSY:
            return f"the server's processor: {self.server:.2f} cores ({parts}), and Python uses one"
        if self.server + self.clients > BUSY * self.cores:
            used = self.server + self.clients
            return f"the machine: server and clients used {used:.2f} of {self.cores} cores, and a browser was open"
        if p99_ms < GOAL_MS:
            return f"nothing yet: the server used {self.server:.2f} cores ({parts}), the clients {self.clients:.2f}"
        return (
            f"waiting, not computing: the server used {self.server:.2f} cores ({parts}), the clients "
            f"{self.clients:.2f}; check the disk's flushes and other programs"
        )
