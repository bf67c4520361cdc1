"""Bias and coverage of the mixed models: ``python -m benchmarks.recovery``.

200 studies of the paper's size drawn from its Table 1; for each, the interaction model, its Wald intervals, and profile
intervals of one coefficient and of both standard deviations. Bias and coverage with their Monte Carlo errors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.machine import arguments, hand_over
from study.analysis.models import intervals, mixed
from study.analysis.planned.nested import FIXED, RANDOM
from study.analysis.power.truths import TABLE_1, AdditiveTruth
from study.analysis.responses import reading as responses
from study.bundle import TRIAL_TYPES
from study.workspace import parallel

SEED = 7
PROFILED = "saliency"


def measure(studies: int, per_condition: int, workers: int | None) -> dict[str, Any]:
    """Measure bias and coverage over the studies."""
    tasks = [(per_condition, SEED, number) for number in range(studies)]
    estimates = pd.concat(parallel.each(run_study, tasks, workers=workers), ignore_index=True)
    rows = [
        _summary(parameter, method, part) for (parameter, method), part in estimates.groupby(["parameter", "method"])
    ]
    return {"studies": studies, "people": 4 * per_condition, "parameters": rows}


def run_study(task: tuple[int, int, int]) -> pd.DataFrame:
    """Tabulate parameter, method, true, estimate, low, high of one simulated study."""
    per_condition, *stream = task
    world = AdditiveTruth(TABLE_1)
    frame = responses.prepare(world.study(per_condition, np.random.default_rng(stream))).frame
    model = mixed.fit(frame, f"correct ~ {FIXED['interaction']} + {RANDOM}")
    wald = intervals.wald(model).rename(columns={"term": "parameter"}).assign(method="wald")
    profile = intervals.profile(frame, model, [PROFILED]).rename(columns={"term": "parameter"})
    sds = intervals.variance_components(frame, model).rename(columns={"sd": "estimate"})
    sds = sds.assign(parameter="sd " + sds["group"])
    table = pd.concat([wald, profile.assign(method="profile"), sds])
    true = {**coefficients(), "sd participant": world.person_sd, "sd category": world.category_sd}
    return table.assign(true=table["parameter"].map(true))[["parameter", "method", "true", "estimate", "low", "high"]]


def coefficients() -> dict[str, float]:
    """Name the coefficients of Table 1 as the model does."""
    named = {}
    for factors, values in TABLE_1.items():
        for kind, value in zip(("", *TRIAL_TYPES[1:]), values, strict=True):
            parts = ([f"trial_type{kind}"] if kind else []) + ([factors] if factors else [])
            named[":".join(parts) or "(Intercept)"] = value
    return named


def _summary(parameter: str, method: str, part: pd.DataFrame) -> dict[str, Any]:
    error, n = part["estimate"] - part["true"], len(part)
    covered = float(((part["low"] <= part["true"]) & (part["true"] <= part["high"])).mean())
    return {
        "parameter": parameter,
        "method": method,
        "true": float(part["true"].iloc[0]),
        "bias": round(float(error.mean()), 4),
        "bias_error": round(float(error.std(ddof=1)) / math.sqrt(n), 4),
        "coverage": round(covered, 4),
        "coverage_error": round(math.sqrt(0.95 * 0.05 / n), 4),
    }


def summarise(errors: NDArray[np.float64], covered: NDArray[np.float64]) -> dict[str, float]:
    """Return bias and coverage of studies (n,), each with its Monte Carlo error."""
    share = float(covered.mean())
    return {
        "bias": float(errors.mean()),
        "bias_error": float(errors.std(ddof=1)) / math.sqrt(len(errors)),
        "coverage": share,
        "coverage_error": math.sqrt(share * (1 - share) / len(errors)),
    }


if __name__ == "__main__":
    parser = arguments("recovery")
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--per-condition", type=int, default=40)
    parser.add_argument("--workers", type=int)
    given = parser.parse_args()
    hand_over("recovery", given, lambda: measure(given.studies, given.per_condition, given.workers))
