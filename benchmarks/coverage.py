"""Coverage of the intervals of every measure: ``python -m benchmarks.coverage``.

200 simulated studies of each size, whose truth is known; for each measure the share of its 95% intervals that contain
the truth, and its Monte Carlo error over studies (intervals of one study are not independent). Where intervals are over
participants, the truth is that of new participants on the same trials, so categories stay the same in all studies;
where a mixed model is fitted, each study draws its own categories. Each cell of Figure 1 is measured in 10,000 further
studies, of which only the counts are simulated: the differences between cells are smaller than the error of 200.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from benchmarks.machine import arguments, hand_over
from study.analysis.exploratory import calibration, detection, items, learning, projection
from study.analysis.models import marginal, mixed
from study.analysis.models.intervals import wald
from study.analysis.planned import contrasts, nested
from study.analysis.responses import accuracies
from study.analysis.responses import reading as responses
from study.bundle import TRIAL_TYPES, TYPE_LABELS
from study.conditions import format_condition
from study.workspace import parallel

Floats = NDArray[np.float64]
SEED = 20
CATEGORIES = 16
PERSON_SD = CATEGORY_SD = 0.6
LEVEL = np.array([-1.0, 0.1, 2.0])
"""Log-odds of each trial type without an explanation."""
EFFECT = {"none": 0.0, "saliency": 0.6, "examples": 0.3, "both": 0.8}
CRITERIA = {"none": 1.2, "saliency": 0.8, "examples": 0.4, "both": 0.0}
DPRIME, OWN = 1.25, 0.3
LOG_SD, LOG_EFFECT = 0.4, -0.1
FACTORS = contrasts.FACTORS
FIXED_CATEGORIES = np.random.default_rng(3).normal(0, CATEGORY_SD, CATEGORIES)
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(61)


def measure(studies: int, cell_studies: int, sizes: list[int], workers: int | None) -> dict[str, Any]:
    """Measure the coverage of each measure over the studies of each size (participants per condition)."""
    cells = [row for size in sizes for row in measure_cells(cell_studies, size)]
    rows = [row for size in sizes for row in _measure_size(studies, size, workers)]
    return {"studies": studies, "sizes": sizes, "trials": 3 * CATEGORIES, "cells": cells, "rows": rows}


def measure_cells(studies: int, per_condition: int) -> list[dict[str, Any]]:
    """Measure the coverage of the interval of each cell of Figure 1 from simulated counts."""
    rng = np.random.default_rng((SEED, per_condition))
    rows = []
    for name in EFFECT:
        covered = np.array([_cover_cells(name, per_condition, rng) for _ in range(studies)])
        rows += [
            {
                "condition": format_condition(name).lower(),
                "trial_type": TYPE_LABELS[kind],
                "per_condition": per_condition,
                "accuracy": round(accuracy(name, k), 4),
                "coverage": round(float(share), 4),
                "error": round(math.sqrt(share * (1 - share) / studies), 4),
                "studies": studies,
            }
            for k, (kind, share) in enumerate(zip(TRIAL_TYPES, covered.mean(axis=0), strict=True))
        ]
    return rows


def _cover_cells(name: str, people: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Simulate one condition's correct responses; tell which trial types' intervals (K,) contain the truth."""
    own = rng.normal(0, PERSON_SD, people)
    eta = LEVEL + EFFECT[name] + own[:, None, None] + FIXED_CATEGORIES[:, None]
    right = (rng.random(eta.shape) < expit(eta)).sum(axis=1).astype(np.float64)
    _, low, high = accuracies.compute_intervals(right, np.full(right.shape, float(CATEGORIES)), level=0.95)
    true = np.array([accuracy(name, k) for k in range(len(LEVEL))])
    return np.asarray((low <= true) & (true <= high))


def _measure_size(studies: int, per_condition: int, workers: int | None) -> list[dict[str, Any]]:
    streams = [(SEED, k) for k in range(studies)]
    what = f"Studies of {per_condition} per condition"
    estimates = pd.concat(parallel.each(partial(run, per_condition), streams, workers=workers, what=what))
    rows = []
    for name, part in estimates.groupby("measure", sort=False):
        by_study = part.groupby("study")["covered"].mean()
        rows.append(
            {
                "measure": name,
                "per_condition": per_condition,
                "coverage": round(float(part["covered"].mean()), 4),
                "error": round(float(by_study.std(ddof=1)) / math.sqrt(len(by_study)), 4),
                "intervals": len(part),
                "studies": len(by_study),
            }
        )
    return rows


def run(per_condition: int, stream: tuple[int, int]) -> pd.DataFrame:
    """Tabulate measure, covered, study: each interval of one study."""
    rng = np.random.default_rng(stream)
    frame = simulate(per_condition, FIXED_CATEGORIES, rng)
    parts = [
        _check_shares(frame),
        _fit_models(simulate(per_condition, rng.normal(0, CATEGORY_SD, CATEGORIES), rng)),
    ]
    parts += [_check_detection(simulate_observers(per_condition, rng)), _check_times(frame, rng)]
    return pd.concat(parts).assign(study=stream[1])


def simulate(per_condition: int, category: Floats, rng: np.random.Generator) -> pd.DataFrame:
    """Simulate a study of logistic participants with confidence ratings that depend on the participant."""
    people = 4 * per_condition
    names = np.repeat(list(EFFECT), per_condition)
    kind, where = np.tile(np.arange(3), CATEGORIES), np.repeat(np.arange(CATEGORIES), 3)
    own = rng.normal(0, PERSON_SD, people)
    eta = LEVEL[kind] + np.array([EFFECT[str(n)] for n in names])[:, None] + own[:, None] + category[where]
    order = np.argsort(rng.random((people, len(kind))), axis=1).argsort(axis=1) + 1
    return _frame(rng.random(eta.shape) < expit(eta), names, kind, where, order, _confidence(eta, own, rng))


def _confidence(eta: Floats, own: Floats, rng: np.random.Generator) -> Floats:
    """Simulate ratings from .5 to 1 that follow the log-odds, the ability with the wrong sign, and noise."""
    raw = 0.4 * eta - 0.8 * own[:, None] + rng.normal(0, 0.8, eta.shape)
    return np.asarray(0.5 + 0.499 * expit(raw), dtype=np.float64)


def simulate_observers(per_condition: int, rng: np.random.Generator) -> pd.DataFrame:
    """Simulate participants of signal detection theory, with equal d' and a criterion for each condition."""
    people = 4 * per_condition
    names = np.repeat(list(CRITERIA), per_condition)
    kind, where = np.tile(np.arange(3), CATEGORIES), np.repeat(np.arange(CATEGORIES), 3)
    signal = kind < 2
    d = (DPRIME + rng.normal(0, OWN, people))[:, None]
    c = (np.array([CRITERIA[str(n)] for n in names]) + rng.normal(0, OWN, people))[:, None]
    shift = rng.normal(0, 0.2, CATEGORIES)[where]
    said = rng.normal(size=(people, len(kind))) + np.where(signal, d / 2, -d / 2) > c + shift
    return _frame(said == signal, names, kind, where)


def _frame(
    right: NDArray[np.bool_],
    names: NDArray[np.str_],
    kind: NDArray[np.int64],
    where: NDArray[np.int64],
    order: NDArray[np.int64] | None = None,
    confidence: Floats | None = None,
) -> pd.DataFrame:
    people, trials = right.shape
    frame = pd.DataFrame(
        {
            "participant": np.repeat([f"p{i:04d}" for i in range(people)], trials),
            "category": np.tile([f"c{j:02d}" for j in where], people),
            "trial_type": np.tile(np.array(TRIAL_TYPES)[kind], people),
            **{f: np.repeat([FACTORS[str(n)][f] for n in names], trials) for f in ("saliency", "examples")},
            "correct": right.ravel().astype(int),
        }
    )
    extra = {} if order is None or confidence is None else {"trial": order.ravel(), "confidence": confidence.ravel()}
    return responses.prepare(frame.assign(**extra)).frame


@cache
def accuracy(condition: str, kind: int, category: float | None = None) -> float:
    """Compute the accuracy of new participants; on the fixed categories, or on one, or (NaN) on new ones."""
    if category is not None and math.isnan(category):
        spread = math.hypot(PERSON_SD, CATEGORY_SD)
        return _mean(LEVEL[kind] + EFFECT[condition], spread)
    over = FIXED_CATEGORIES if category is None else [category]
    return float(np.mean([_mean(LEVEL[kind] + EFFECT[condition] + shift, PERSON_SD) for shift in over]))


def _mean(eta: float, sd: float) -> float:
    return float(expit(eta + sd * NODES) @ WEIGHTS / WEIGHTS.sum())


def _check_shares(frame: pd.DataFrame) -> pd.DataFrame:
    shown = accuracies.accuracy(frame)
    true = [accuracy(r.condition, TRIAL_TYPES.index(r.trial_type)) for r in shown.itertuples()]
    parts = [_tabulate_coverage("accuracy by condition and trial type (Figure 1)", shown, true)]
    belief = projection.table(frame)
    true = [_compute_projection(str(name)) for name in belief["condition"]]
    parts.append(_tabulate_coverage("belief projection", belief, true))
    blocks = learning.table(frame)
    true = [np.mean([accuracy(str(name), k) for k in range(3)]) for name in blocks["condition"]]
    parts.append(_tabulate_coverage("accuracy by block of trials (learning)", blocks, true))
    sure = calibration.bins(frame)
    known = compute_calibration()
    true = [known[str(r.condition), _bin(r.confidence)] for r in sure.itertuples()]
    parts.append(_tabulate_coverage("calibration: accuracy by confidence", sure, true))
    cells = items.table(frame)
    true = [
        np.mean([accuracy(n, TRIAL_TYPES.index(r.trial_type), FIXED_CATEGORIES[int(r.category[1:])]) for n in EFFECT])
        for r in cells.itertuples()
    ]
    parts.append(_tabulate_coverage("accuracy by category and trial type (Wilson)", cells, true))
    return pd.concat(parts)


def _compute_projection(condition: str) -> float:
    wrong = np.mean([1 - accuracy(condition, k) for k in (0, 1)])
    return float((wrong + accuracy(condition, 2)) / 2)


def _bin(confidence: float) -> int:
    return min(int(confidence * calibration.BINS), calibration.BINS - 1)


@cache
def compute_calibration() -> dict[tuple[str, int], float]:
    """Compute the population's accuracy in each bin of confidence, from very many participants."""
    frame = simulate(5000, FIXED_CATEGORIES, np.random.default_rng(99))
    binned = frame.assign(bin=frame["confidence"].map(_bin))
    return dict(binned.groupby(["condition", "bin"])["correct"].mean().items())


def _fit_models(frame: pd.DataFrame) -> pd.DataFrame:
    model = nested.analyze(frame, fixed={"interaction": nested.FIXED["interaction"]}).largest
    table = contrasts.table(model)
    pairs = [(c.more, TRIAL_TYPES.index(c.trial_types[0])) for c in contrasts.DEFAULT]
    points = [100 * (accuracy(name, k, math.nan) - accuracy("none", k, math.nan)) for name, k in pairs]
    shown = table.rename(columns={"low": "_low", "high": "_high", "points_low": "low", "points_high": "high"})
    effects = marginal.average_effects(frame, model, ["saliency", "examples"], by="trial_type")
    true = [_average(str(r.variable), TRIAL_TYPES.index(str(r.trial_type))) for r in effects.itertuples()]
    return pd.concat(
        [
            _tabulate_coverage("contrasts, log-odds (Wald)", table, [EFFECT[name] for name, _ in pairs]),
            _tabulate_coverage("contrasts, percentage points (delta method)", shown, points),
            _tabulate_coverage("average effects on the probability (delta method)", effects, true),
        ]
    )


def _average(variable: str, kind: int) -> float:
    other = "examples" if variable == "saliency" else "saliency"
    pairs = ((variable, "none"), ("both", other))
    return float(np.mean([accuracy(a, kind, math.nan) - accuracy(b, kind, math.nan) for a, b in pairs]))


def _check_detection(frame: pd.DataFrame) -> pd.DataFrame:
    table = detection.conditions(frame)
    parts = []
    for name, true in (("dprime", [DPRIME] * 4), ("criterion", [CRITERIA[str(c)] for c in table["condition"]])):
        renamed = table.rename(columns={f"{name}_low": "low", f"{name}_high": "high"})
        parts.append(_tabulate_coverage(f"signal detection: {name}", renamed, true))
    differences = detection.differences(frame)
    for name, part in differences.groupby("measure", sort=False):
        more = [str(c).split(" - ")[0] for c in part["contrast"]]
        true = [0.0 if name == "dprime" else CRITERIA[c] - CRITERIA["none"] for c in more]
        parts.append(_tabulate_coverage(f"signal detection: difference in {name}", part, true))
        if name == "dprime":
            wrong = part.assign(low=-np.inf, high=np.where(part["p"] < 0.05, np.inf, -np.inf))
            parts.append(_tabulate_coverage("signal detection: p < .05 for equal d' (false positives)", wrong, true))
    return pd.concat(parts)


def _check_times(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Simulate log times with an effect of saliency; each study draws its own categories."""
    participant = {name: rng.normal(0, 0.3) for name in frame["participant"].unique()}
    category = {name: rng.normal(0, 0.1) for name in frame["category"].unique()}
    log = 7.5 + frame["participant"].map(participant) + frame["category"].map(category) + LOG_EFFECT * frame["saliency"]
    timed = frame.assign(log_rt=log + rng.normal(0, LOG_SD, len(frame)))
    formula = f"log_rt ~ {nested.FIXED['interaction']} + {nested.RANDOM}"
    table = wald(mixed.fit(timed, formula, family="gaussian", reml=True))
    true = [{"(Intercept)": 7.5, "saliency": LOG_EFFECT}.get(str(term), 0.0) for term in table["term"]]
    return _tabulate_coverage("log response times: coefficients (REML)", table, true)


def _tabulate_coverage(name: str, table: pd.DataFrame, true: list[float]) -> pd.DataFrame:
    """Tabulate coverage of the finite intervals."""
    known = table["low"].notna().to_numpy()
    covered = (table["low"].to_numpy() <= np.array(true)) & (np.array(true) <= table["high"].to_numpy())
    return pd.DataFrame({"measure": name, "covered": covered[known]})


if __name__ == "__main__":
    parser = arguments("coverage")
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--cell-studies", type=int, default=10_000, help="further studies for each cell of Figure 1")
    parser.add_argument("--sizes", type=int, nargs="+", default=[5, 10, 20, 40], help="participants per condition")
    parser.add_argument("--workers", type=int)
    given = parser.parse_args()
    hand_over("coverage", given, lambda: measure(given.studies, given.cell_studies, given.sizes, given.workers))
