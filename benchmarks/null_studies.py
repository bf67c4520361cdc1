"""False positives and power of the default analysis: ``python -m benchmarks.null_studies``.

Studies in worlds that the analysis does not know: explanations have no effect on average, and participants differ in
the effect of trial types, categories and images in that of explanations, or nobody does; and for power a world with the
effects of the paper's Table 1. Each study is analysed as the product does by default (`DEFAULT`: random slopes reduced
where singular, F tests, Holm's correction), by the same models with the chi-square distribution and each test at .05,
and with the paper's random intercepts; and by the differences in d' and criterion between conditions (Holm). Shares of
p < .05 with 95% intervals for the studies simulated (Clopper & Pearson). A run goes on from the studies in the file of
``--json``, so that it can be made in parts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2
from statsmodels.stats.proportion import proportion_confint

from benchmarks.machine import arguments, hand_over
from study.analysis.exploratory import detection
from study.analysis.planned.contrasts import DEFAULT as CONTRASTS
from study.analysis.power.outcomes import run_contrasts, run_tests
from study.analysis.power.truths import TABLE_1, AdditiveTruth
from study.analysis.responses.reading import prepare
from study.plan.preregistration import DEFAULT, NESTED
from study.workspace import parallel

SEED = 15
ALPHA = 0.05
NOTHING: Mapping[str, tuple[float, float, float]] = {"": TABLE_1[""]}
WORLDS = {
    "nobody differs": AdditiveTruth(NOTHING),
    "participants differ in trial types (SD .8)": AdditiveTruth(NOTHING, person_slope_sd=0.8),
    "categories differ in explanations (SD .5)": AdditiveTruth(NOTHING, category_slope_sd=0.5),
    "participants and categories differ": AdditiveTruth(NOTHING, person_slope_sd=0.8, category_slope_sd=0.5),
    "images differ in explanations (SD .5)": AdditiveTruth(NOTHING, image_slope_sd=0.5),
    "all differ, and images in their level (SD .5)": AdditiveTruth(
        NOTHING, person_slope_sd=0.8, category_slope_sd=0.5, image_slope_sd=0.5, image_sd=0.5
    ),
    "effects of Table 1, nobody differs (power)": AdditiveTruth(TABLE_1),
    "effects of Table 1, images differ (power)": AdditiveTruth(TABLE_1, image_slope_sd=0.5),
}
MAIN = ("nobody differs", "participants and categories differ", "images differ in explanations (SD .5)")
"""The worlds of a short run."""
TESTS = ("explanation", "interaction")


def measure(
    studies: int,
    per_condition: list[int],
    categories: list[int],
    worlds: list[str],
    workers: int | None,
    path: Path | None,
) -> dict[str, Any]:
    """Measure the share of rejections in each world and size, with what was measured before."""
    known = path is not None and path.is_file()
    before = json.loads(path.read_text(encoding="utf-8"))["result"].get("counts", []) if path and known else []
    counts = {(c["world"], c["participants"], c["categories"]): c for c in before}
    for world, size, number in product(worlds, per_condition, categories):
        key = (world, 4 * size, number)
        held = counts.setdefault(
            key, dict(zip(("world", "participants", "categories"), key, strict=True)) | {"studies": 0}
        )
        first = held["studies"]
        work = partial(run_study, replace(WORLDS[world], categories=number), size)
        streams = [(SEED, k, size) for k in range(first, studies)]
        if streams:
            hits = pd.DataFrame(parallel.each(work, streams, workers=workers)).sum()
            counts[key] = {**held, "studies": studies} | {
                name: int(held.get(name, 0) + hit) for name, hit in hits.items()
            }
            print(json.dumps(counts[key]), file=sys.stderr, flush=True)  # print partial results of a long run
    order = list(WORLDS)
    ordered = sorted(counts.values(), key=lambda c: (order.index(c["world"]), c["participants"], c["categories"]))
    return {"counts": ordered, "rows": [row for one in ordered for row in summarise(one)]}


def run_study(truth: AdditiveTruth, per_condition: int, stream: tuple[int, ...]) -> dict[str, bool]:
    """Tell for one study which tests of which analysis reject; a test without p rejects nothing."""
    frame = truth.study(per_condition, np.random.default_rng(stream))
    default, random, near = run_tests(frame, DEFAULT, "corrected")
    paper, _, _ = run_tests(frame, NESTED, "chi_square")
    contrasts = run_contrasts(frame, NESTED["interaction"], random, CONTRASTS, near, has_df=True)
    return {
        **_judge("default", [test.decisive_p for test in default]),
        **_judge("slopes, chi-square", [None if t.p is None else float(chi2.sf(t.chisq, t.df)) for t in default]),
        **_judge("intercepts, as in the paper", [test.p for test in paper]),
        "default: any contrast": bool((contrasts["p_holm"] < ALPHA).any()),
        "signal detection: any difference": bool((detection.differences(prepare(frame).frame)["p_holm"] < ALPHA).any()),
    }


def _judge(analysis: str, p: list[float | None]) -> dict[str, bool]:
    rejected = [value is not None and value < ALPHA for value in p]
    named = {f"{analysis}: {test}": hit for test, hit in zip(TESTS, rejected, strict=True)}
    return named | {f"{analysis}: any test": any(rejected)}


def summarise(counts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the share of each test in one world and size, with its interval."""
    rows = []
    for name in (name for name in counts if ": " in name):
        low, high = proportion_confint(counts[name], counts["studies"], method="beta")
        share = {"rejected": counts[name] / counts["studies"], "low": float(low), "high": float(high)}
        analysis, test = name.split(": ")
        known = {key: counts[key] for key in ("world", "participants", "categories", "studies")}
        rows.append(known | {"analysis": analysis, "test": test} | {k: round(v, 4) for k, v in share.items()})
    return rows


if __name__ == "__main__":
    parser = arguments("null_studies")
    parser.add_argument("--studies", type=int, default=1000, help="In all, with those of the record.")
    parser.add_argument("--per-condition", type=int, nargs="+", default=[10, 40])
    parser.add_argument("--categories", type=int, nargs="+", default=[10])
    parser.add_argument("--worlds", nargs="+", default=list(MAIN), choices=list(WORLDS))
    parser.add_argument("--workers", type=int)
    given = parser.parse_args()
    hand_over(
        "null_studies",
        given,
        lambda: measure(given.studies, given.per_condition, given.categories, given.worlds, given.workers, given.json),
    )
