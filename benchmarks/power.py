"""Duration of a power analysis: ``python -m benchmarks.power``.

1,000 studies of 160 participants from the paper's Table 1, each with three nested fits and their two tests, on every
core. Other programs lengthen wall time but hardly processor time, so both are reported, and the
second divided by the number of cores: the wall time on an idle machine.
"""

from __future__ import annotations

import os
import time
from typing import Any

from benchmarks.machine import arguments, hand_over
from study.analysis.power import simulation as power
from study.analysis.power.truths import TABLE_1, AdditiveTruth

SEED = 2021


def measure(studies: int, per_condition: int, effect: float, workers: int | None) -> dict[str, Any]:
    """Measure the seconds and the power."""
    wall, processors = time.perf_counter(), _processors()
    table = power.curve(
        AdditiveTruth(TABLE_1), [per_condition], studies=studies, seed=SEED, effects=[effect], workers=workers
    )
    used = _processors() - processors
    cores = workers or os.cpu_count() or 1
    return {
        "studies": studies,
        "people": 4 * per_condition,
        "workers": cores,
        "seconds": round(time.perf_counter() - wall, 1),
        "cpu_seconds": round(used, 1),
        "cpu_seconds_per_worker": round(used / cores, 1),
        "power": table.round(4).to_dict("records"),
    }


def _processors() -> float:
    """Measure the processor seconds of this process and of its finished children."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


if __name__ == "__main__":
    parser = arguments("power")
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--per-condition", type=int, default=40)
    parser.add_argument("--effect", type=float, default=1.0, help="multiple of the effects of Table 1")
    parser.add_argument("--workers", type=int, help="processes; every core if not given")
    given = parser.parse_args()
    hand_over("power", given, lambda: measure(given.studies, given.per_condition, given.effect, given.workers))
