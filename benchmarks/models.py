"""The three nested mixed models on data of the paper's size: ``python -m benchmarks.models``.

160 people, 30 categories crossed with three trial types, one trial missing: 89 trials each, drawn from the paper's
published coefficients (Table 1) with standard deviations of 0.38 between people and 0.6 between categories, which
reproduce its standard errors.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from scipy.special import expit

from benchmarks.machine import report
from study.analysis import nested, responses
from study.bundle import TRIAL_TYPES

PEOPLE, CATEGORIES = 160, 30
PERSON_SD, CATEGORY_SD = 0.38, 0.6
SEED = 2021
TABLE_1 = {  # (saliency, examples) -> added log-odds for each trial type
    (): (-1.06, 0.09, 4.64),
    ("saliency",): (1.01, -0.29, -1.71),
    ("examples",): (0.46, -0.24, -2.01),
    ("saliency", "examples"): (-0.53, 0.11, 1.18),
}
"""Per factor: the effect at adversarial incorrect, and what standard incorrect and standard correct add to it."""

T = TypeVar("T")


def measure() -> dict[str, Any]:
    """Wall and processor seconds of the three fits."""
    data = responses.prepare(simulated(np.random.default_rng(SEED)))
    nested.analyze(data)  # warm
    analysis, ours = timed(lambda: nested.analyze(data))
    return {
        "answers": len(data.frame),
        "three_nested_fits": ours,
        "converged": {name: model.converged for name, model in analysis.models.items()},
        "tests": {f"{t.smaller} - {t.larger}": [round(t.chisq, 2), t.df] for t in analysis.tests},
    }


def simulated(rng: np.random.Generator) -> pd.DataFrame:
    """One row for each answer."""
    person, category = rng.normal(0, PERSON_SD, PEOPLE), rng.normal(0, CATEGORY_SD, CATEGORIES)
    trials = list(product(range(CATEGORIES), range(len(TRIAL_TYPES))))[:-1]
    rows = []
    for i in range(PEOPLE):
        saliency, examples = i % 2, i // 2 % 2
        shown = {name for name, flag in (("saliency", saliency), ("examples", examples)) if flag}
        for j, k in trials:
            eta = person[i] + category[j]
            eta += sum(a[0] + (a[k] if k else 0) for factors, a in TABLE_1.items() if set(factors) <= shown)
            rows.append((f"p{i}", f"c{j}", TRIAL_TYPES[k], saliency, examples, int(rng.random() < expit(eta))))
    return pd.DataFrame(rows, columns=list(responses.REQUIRED))


def timed(work: Callable[[], T]) -> tuple[T, dict[str, float]]:
    """The result, and wall and processor seconds."""
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return result, {
        "seconds": round(time.perf_counter() - wall, 3),
        "cpu_seconds": round(time.process_time() - processor, 3),
    }


if __name__ == "__main__":
    report("models", measure)
