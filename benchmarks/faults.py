"""kill -9 of the server at fifty random moments under load: ``python -m benchmarks.faults``.

The same as `tests/faults/test_kill.py`, with fifty kills. Lost and doubled responses must both be 0.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.machine import arguments, hand_over
from tests.faults.soak import prepared, soak
from tests.server import serving

TRIALS = 1_500
"""More trials than any participant completes."""


def measure(clients: int, kills: int, seed: int) -> dict[str, Any]:
    """Run one long soak test."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        prepared(home, clients, TRIALS)
        with serving(home) as server:
            outcome = asdict(soak(server, clients, kills, seed))
    wall = round(time.monotonic() - began, 1)
    return {"clients": clients, "kills": kills, "seed": seed, "wall_s": wall, **outcome}


if __name__ == "__main__":
    parser = arguments("faults")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    hand_over("faults", given, lambda: measure(given.clients, given.kills, given.seed))
