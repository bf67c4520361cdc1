"""kill -9 of the server at fifty random moments under load: ``python -m benchmarks.faults``.

What `tests/faults/test_kill.py` does four times. Lost and doubled answers must both be 0.
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
"""More than anybody answers."""


def measure(clients: int, kills: int, seed: int) -> dict[str, Any]:
    """One long soak."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        prepared(home, clients, TRIALS)
        with serving(home) as server:
            found = asdict(soak(server, clients, kills, seed))
    wall = round(time.monotonic() - began, 1)
    return {"clients": clients, "kills": kills, "seed": seed, "wall_s": wall, **found}


if __name__ == "__main__":
    parser = arguments("faults")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    hand_over("faults", given, lambda: measure(given.clients, given.kills, given.seed))
