"""The mixed models against other programs: ``python -m benchmarks.models``.

Studies drawn from the paper's published coefficients (Table 1) with standard deviations of 0.38 (participants) and 0.6
(categories), which reproduce its standard errors. All programs fit the same rows in one run; R is started for
each fit; starting and reading are not counted. Seconds are processor time. A peer that does not end within
`LIMIT_S` is stopped and reported so.
"""

from __future__ import annotations

import json
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from benchmarks.machine import report
from study.analysis.exploratory import crosschecks
from study.analysis.models import mixed
from study.analysis.planned import nested
from study.analysis.planned.nested import FIXED, RANDOM
from study.analysis.power.truths import TABLE_1, AdditiveTruth
from study.analysis.responses import reading as responses

SEED = 2021
SIZES = {"160 participants": 40, "1600 participants": 400}
"""Name of a design -> participants per condition."""
LIMIT_S = 120
"""Processor time that a fit in R may take, its start included."""
GROWTH = (10, 20, 40, 100, 200, 400)
FORMULA = f"correct ~ {FIXED['interaction']} + {RANDOM}"
SLOPE = f"correct ~ {FIXED['interaction']} + (1|participant) + (1 + saliency|category)"

STATSMODELS = "statsmodels (variational Bayes, and GEE)"

T = TypeVar("T")

_R = """
suppressMessages(library(PACKAGE))
data <- read.csv(FILE, stringsAsFactors = TRUE)
data$trial_type <- relevel(data$trial_type, "adv_incorrect")
warned <- character(0)
time <- system.time(model <- withCallingHandlers(FIT, warning = function(w) {
  warned <<- c(warned, conditionMessage(w)); invokeRestart("muffleWarning") }))
cat(time[["user.self"]] + time[["sys.self"]], as.numeric(logLik(model)), length(warned))
"""
_PEERS = {
    "lme4, default": ("lme4", "glmer({formula}, data, binomial)"),
    "lme4, bobyqa": ("lme4", 'glmer({formula}, data, binomial, control = glmerControl(optimizer = "bobyqa"))'),
    "glmmTMB": ("glmmTMB", "glmmTMB({formula}, data, binomial)"),
}


def measure() -> dict[str, Any]:
    """Measure every program on every design."""
    result: dict[str, Any] = {"limit_cpu_seconds": LIMIT_S}
    for name, per_condition in SIZES.items():
        frame = data(per_condition)
        result[name] = {
            "responses": len(frame),
            "three nested fits": nested_fits(frame),
            "interaction model": compare_programs(frame, FORMULA),
        }
    result["160 participants, random slope"] = compare_programs(data(SIZES["160 participants"]), SLOPE)
    result["growth"] = [{"people": 4 * n, **fit_alone(data(n), FORMULA)} for n in GROWTH]
    return result


def data(per_condition: int) -> pd.DataFrame:
    """Simulate one study of the paper's design."""
    return responses.prepare(AdditiveTruth(TABLE_1).study(per_condition, np.random.default_rng(SEED))).frame


def nested_fits(frame: pd.DataFrame) -> dict[str, Any]:
    """Run the whole analysis: fits, checks of separation and of convergence, tests."""
    nested.analyze(frame.head(2000))  # warm up
    analysis, seconds = measure_time(lambda: nested.analyze(frame))
    return {**seconds, "tests": {f"{t.smaller} - {t.larger}": [round(t.chisq, 2), t.df] for t in analysis.tests}}


def compare_programs(frame: pd.DataFrame, formula: str) -> dict[str, Any]:
    """Compare seconds, log-likelihood and number of warnings of each program."""
    fits: dict[str, Any] = {"Foretell": fit_alone(frame, formula)}
    fits |= {name: fit_in_r(frame, formula, *_PEERS[name]) for name in _PEERS}
    fits[STATSMODELS] = fit_bayesian(frame) if formula == FORMULA else "has no correlated random slopes"
    return fits


def fit_alone(frame: pd.DataFrame, formula: str) -> dict[str, Any]:
    """Measure this project's fit, with its checks."""
    model, seconds = measure_time(lambda: mixed.fit(frame, formula))
    return {**seconds, "loglik": round(model.loglik, 4), "warnings": len(model.messages)}


def fit_bayesian(frame: pd.DataFrame) -> dict[str, Any]:
    """Fit the same terms by statsmodels, with the additional checks of `study.analysis.exploratory.crosschecks`."""
    model = mixed.fit(frame, FORMULA)
    return measure_time(lambda: crosschecks.table(frame, model))[1]


def fit_in_r(frame: pd.DataFrame, formula: str, package: str, call: str) -> dict[str, Any] | str:
    """Fit in R, or explain why not."""
    if shutil.which("Rscript") is None:
        return "R is not installed"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.csv"
        frame.to_csv(path, index=False)
        script = _R.replace("PACKAGE", package).replace("FILE", json.dumps(str(path)))
        script = script.replace("FIT", call.format(formula=formula))
        done = subprocess.run(
            ["Rscript", "-e", script], capture_output=True, text=True, check=False, preexec_fn=_limit_processor_time
        )
    if done.returncode in (-signal.SIGXCPU, 128 + signal.SIGXCPU, -signal.SIGKILL):
        return f"not finished within {LIMIT_S} s of processor time"
    if done.returncode:
        return f"{package} is not installed" if "no package" in done.stderr else done.stderr.strip()[-200:]
    seconds, loglik, warned = done.stdout.split()
    return {"cpu_seconds": round(float(seconds), 2), "loglik": round(float(loglik), 4), "warnings": int(warned)}


def _limit_processor_time() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))


def measure_time(work: Callable[[], T]) -> tuple[T, dict[str, float]]:
    """Return the result, and wall and processor seconds."""
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return result, {
        "seconds": round(time.perf_counter() - wall, 3),
        "cpu_seconds": round(time.process_time() - processor, 3),
    }


if __name__ == "__main__":
    report("models", measure)
