"""Bias and coverage of the planned contrasts of each task: ``python -m benchmarks.task_recovery``.

The studies of the gallery are built, simulated participants whose theory is known respond to their trials, and each
simulated study is analysed by its own plan. The truth is what the theories imply for these trials, averaged over
participants without simulating one. Bias in percentage points, or in levels, with its Monte Carlo error; coverage of
the 95% intervals. A run goes on from the rows in the file of ``--json``.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.machine import arguments, describe
from benchmarks.recovery import summarise
from core.errors import ForetellError
from dashboard.power.jobs import PowerAnalysis
from study.analysis.models import formula as formulas
from study.analysis.models import mixed, random_effects
from study.analysis.models.threads import one_blas_thread
from study.analysis.planned.contrasts import table
from study.analysis.power.outcomes import run_tests
from study.analysis.power.truths import Truth
from study.building.build import build
from study.plan import config
from study.workspace import parallel
from study.workspace.workspace import VARIABLE as HOME

SEED = 139
STUDIES = Path(__file__).parents[1] / "data" / "studies"
GALLERY = (
    "demo",
    "several-classes",
    "accept-reject",
    "reliance",
    "agreement",
    "rating",
    "localise",
    "unit-choice",
    "unit-counterfactual",
)
"""Names of study files whose contrasts simulated participants can show: `highlight` has the trials of `localise`, what
`distinction` compares is not simulated here, and `meta-predictor` has blocks."""
MIXTURE = {"map_reader": 0.5, "bayesian_learner": 0.5}


def measure(name: str, studies: int, per_condition: int, workers: int | None) -> dict[str, Any]:
    """Measure bias and coverage of each planned contrast of one study of the gallery."""
    path = STUDIES / f"{name}.toml"
    build(path, Path(os.environ[HOME]))
    question = PowerAnalysis(config.read(path), (per_condition,), mixture=MIXTURE, with_contrasts=True)
    world, true = question.truth(), list_truth(question)
    work = partial(run_study, question, world, per_condition)
    made = pd.concat(parallel.each(work, list(range(studies)), workers=workers, what=name), ignore_index=True)
    rows = [_summarise(contrast, true[contrast], part) for contrast, part in made.groupby("contrast", sort=False)]
    return {
        "study": name,
        "task": question.study.study.task,
        "studies": studies,
        "participants": per_condition * len(question.conditions),
        "unit": "points" if question.outcome.is_scored else "levels",
        "contrasts": rows,
    }


def list_truth(question: PowerAnalysis) -> dict[str, float]:
    """List the true difference of each contrast: of the means that the theories imply, averaged over trial types."""
    outcome, types = question.outcome, question.study.task.types
    means = question.tabulate_means().set_index(["condition", "trial_type"])[outcome.mean]
    truth = {}
    for one in question.contrasts:
        kinds = [kind for kind in types if kind in one.trial_types] or types
        each = [means[one.more, kind] - means[one.less, kind] for kind in kinds]
        truth[one.name] = outcome.unit * float(np.mean(each))
    return truth


@one_blas_thread()
def run_study(question: PowerAnalysis, world: Truth, per_condition: int, number: int) -> pd.DataFrame:
    """Simulate and analyse one study: contrast, estimate, low and high; empty where the fit failed."""
    frame = world.study(per_condition, np.random.default_rng((SEED, number)))
    plan, outcome = question.study.plan, question.outcome
    _, random, near = run_tests(frame, plan.models, plan.tests)
    fixed, asked = random_effects.split(plan.models)
    formula = f"{outcome.column} ~ {list(fixed.values())[-1]} + {random}"
    try:
        has_df = formulas.has_slopes(f"y ~ {asked}")
        model = mixed.fit(frame, formula, family=outcome.family, near=near, has_df=has_df)
    except ForetellError:
        return pd.DataFrame()
    columns = {outcome.difference: "estimate", outcome.low: "low", outcome.high: "high"}
    return table(model, question.contrasts)[["contrast", *columns]].rename(columns=columns)


def _summarise(contrast: str, true: float, part: pd.DataFrame) -> dict[str, Any]:
    known = part.dropna()
    covered = (known["low"] <= true) & (true <= known["high"])
    return {
        "contrast": contrast,
        "true": round(true, 3),
        "known": len(known),
        "width": round(float((known["high"] - known["low"]).median()), 3),
        **summarise((known["estimate"] - true).to_numpy(np.float64), covered.to_numpy(np.float64)),
    }


def run(given: Any) -> None:
    """Measure the studies that the file does not have yet; write it after each."""
    stored = json.loads(given.json.read_text(encoding="utf-8")) if given.json and given.json.is_file() else {}
    rows = {row["study"]: row for row in stored.get("result", {}).get("studies", [])}
    machine = stored.get("machine") or describe()
    for name in given.only:
        if name not in rows or rows[name]["studies"] < given.studies:
            rows[name] = measure(name, given.studies, given.per_condition, given.workers)
            result = {"studies": [rows[one] for one in GALLERY if one in rows]}
            text = json.dumps({"benchmark": "task_recovery", "machine": machine, "result": result}, indent=1) + "\n"
            sys.stdout.write(f"{json.dumps(rows[name])}\n")
            if given.json:
                given.json.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    parser = arguments("task_recovery")
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--per-condition", type=int, default=20)
    parser.add_argument("--only", nargs="+", default=GALLERY, choices=GALLERY)
    parser.add_argument("--workers", type=int)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault(HOME, folder)
        run(options)
