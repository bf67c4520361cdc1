"""False positives of the tests when explanations have no effect: ``python -m benchmarks.null_studies``.

Studies without any effect of explanations, in worlds where participants differ in their effects of trial type, where
categories differ in their effects of explanations, in both, and in neither. Each study is analysed with random
intercepts only, as the paper's, with random slopes without correlations, and with correlated slopes, which are reduced
where singular (`study.analysis.models.random_effects.RULE`). The share of p < .05 of each test, with its 95% interval
for the studies simulated (Clopper & Pearson).
"""

from __future__ import annotations

import json
import sys
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint

from benchmarks.machine import arguments, hand_over
from study.analysis.planned.nested import FIXED, RANDOM
from study.analysis.power import simulation as power
from study.analysis.power.truths import TABLE_1, AdditiveTruth
from study.workspace import parallel

SEED = 15
WORLDS = {
    "participants differ in trial types (SD .8)": (0.8, 0.0),
    "categories differ in explanations (SD .5)": (0.0, 0.5),
    "neither differs": (0.0, 0.0),
    "both differ": (0.8, 0.5),
}
CHOICES = {
    "random intercepts (the paper)": RANDOM,
    "slopes without correlations (||)": "(trial_type||participant) + (saliency + examples||category)",
    "correlated slopes, reduced if singular": "(trial_type|participant) + (saliency + examples|category)",
}


def measure(studies: int, per_condition: int, categories: int, workers: int | None) -> dict[str, Any]:
    """Measure the share of rejections of each test in each world with each choice of random effects."""
    rows = []
    for world, (by_participant, by_category) in WORLDS.items():
        truth = AdditiveTruth(
            {"": TABLE_1[""]},
            categories=categories,
            person_slope_sd=by_participant,
            category_slope_sd=by_category,
        )
        work = partial(run_study, truth, per_condition)
        tests = pd.concat(parallel.each(work, [(SEED, k) for k in range(studies)], workers=workers))
        for (choice, test), part in tests.groupby(["choice", "test"], sort=False):
            rows.append({"world": world, "choice": choice, "test": test, **_share(part["p"])})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)  # print partial results of a long run
    return {"studies": studies, "participants": 4 * per_condition, "categories": categories, "rows": rows}


def run_study(truth: AdditiveTruth, per_condition: int, stream: tuple[int, int]) -> pd.DataFrame:
    """Tabulate choice, test and p of one study."""
    frame = truth.study(per_condition, np.random.default_rng(stream))
    rows = []
    run = cache(partial(power.run, frame))  # the reduced model is often the one without correlations
    for choice, random in CHOICES.items():
        fits = power.fits(frame, FIXED, random, run)
        rows += [
            (choice, f"{small} - {large}", power.chance(fits[small], fits[large])) for small, large in pairwise(FIXED)
        ]
    return pd.DataFrame(rows, columns=["choice", "test", "p"])


def _share(p: pd.Series[float]) -> dict[str, float | int]:
    known = p.dropna()
    hits = int((known < 0.05).sum())
    low, high = proportion_confint(hits, len(known), method="beta")
    return {
        "rejected": round(hits / len(known), 4),
        "low": round(float(low), 4),
        "high": round(float(high), 4),
        "fitted": len(known),
        "failed": int(p.isna().sum()),
    }


if __name__ == "__main__":
    parser = arguments("null_studies")
    parser.add_argument("--studies", type=int, default=500)
    parser.add_argument("--per-condition", type=int, default=20)
    parser.add_argument("--categories", type=int, default=16)
    parser.add_argument("--workers", type=int)
    given = parser.parse_args()
    hand_over(
        "null_studies", given, lambda: measure(given.studies, given.per_condition, given.categories, given.workers)
    )
