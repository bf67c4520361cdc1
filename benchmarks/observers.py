"""Confidence and response times of observers whose parameters are known: ``python -m benchmarks.observers``.

20 observers with 60 trials each. Confidence comes from the evidence of the response, so that meta-d' is d'. Times are
walks of a diffusion model, and draws from an ex-Gaussian distribution. Observers are alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.machine import arguments, hand_over
from benchmarks.recovery import summarise
from study.analysis.exploratory import diffusion, ex_gaussian, metacognition
from study.workspace import parallel
from tests.study.analysis.observers import draw_tails, hurry, rate

SEED = 91
DPRIME = 1.5
WALK = {"drift": 1.2, "boundary": 1.6, "nondecision_s": 0.4}
TAIL = {"mu_s": 0.6, "sigma_s": 0.1, "tau_s": 0.4}
TRUE = {"meta_d": DPRIME, "efficiency": 1.0, **WALK, **TAIL}
SOURCES = {"confidence": ("meta_d", "efficiency"), "walks": tuple(WALK), "tails": tuple(TAIL)}
WHAT = {name: source for source, names in SOURCES.items() for name in names}


def run(number: int) -> dict[str, tuple[float, bool]]:
    """Return the error of each estimate in one condition of one study, and whether its interval covers the truth."""
    seed = SEED + number
    walk = (WALK["drift"], WALK["boundary"], WALK["nondecision_s"])
    tail = (TAIL["mu_s"], TAIL["sigma_s"], TAIL["tau_s"])
    rated = metacognition.conditions(rate(seed, {"none": 0.0}, dprime=DPRIME))
    walks = diffusion.conditions(diffusion.estimate_participants(hurry(seed, {"none": walk}, trials=120)))
    tails = ex_gaussian.conditions(ex_gaussian.estimate_participants(draw_tails(seed, {"none": tail})))
    rows = {"confidence": rated.iloc[0], "walks": walks[walks["trials"] == "AI right"].iloc[0], "tails": tails.iloc[0]}
    return {name: _judge(rows[WHAT[name]], name, true) for name, true in TRUE.items()}


def _judge(row: pd.Series[Any], name: str, true: float) -> tuple[float, bool]:
    return float(row[name]) - true, bool(row[f"{name}_low"] <= true <= row[f"{name}_high"])


def measure(studies: int, workers: int | None) -> dict[str, Any]:
    """Measure bias and coverage of each parameter."""
    made = parallel.each(run, list(range(studies)), workers=workers, what="Studies")
    return {"studies": studies, "participants": 20, "parameters": [_summarise(name, made) for name in TRUE]}


def _summarise(name: str, made: list[Mapping[str, tuple[float, bool]]]) -> dict[str, Any]:
    errors, covered = np.array([one[name] for one in made], dtype=np.float64).T
    return {"parameter": name, "method": WHAT[name], "true": TRUE[name], **summarise(errors, covered)}


if __name__ == "__main__":
    parser = arguments("observers")
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--workers", type=int)
    given = parser.parse_args()
    hand_over("observers", given, lambda: measure(given.studies, given.workers))
