"""Bayesian fits of simulated studies whose truth is drawn from the priors: ``python -m benchmarks.bayes_studies``.

Simulation-based calibration (Talts, Betancourt, Simpson, Vehtari & Gelman, 2018, arXiv:1804.06788): parameters are
drawn from the priors, responses from the parameters, and the rank of each parameter among its posterior draws is
uniform if the posterior is right. 95% of the 95% intervals then contain the truth. In some studies the draw itself
makes a cell all correct or all incorrect, and maximum likelihood has an infinite estimate.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2

from benchmarks.machine import arguments, hand_over
from core.errors import ForetellError
from study.analysis.bayes import contrasts, design, posterior, predictive, sampler
from study.analysis.bayes.design import Design
from study.analysis.bayes.posterior import HIGH, LOW
from study.analysis.bayes.priors import Priors
from study.analysis.bayes.sampler import ParameterDraws, SamplerSettings
from study.analysis.models import mixed
from study.analysis.planned.contrasts import Contrast
from study.bundle import TRIAL_TYPES
from study.plan.preregistration import DEFAULT
from study.workspace import parallel

SEED = 90
CATEGORIES, PER_CONDITION, PER_TYPE = 8, 8, 5
FORMULA = "correct ~ trial_type * saliency * examples + (1|participant) + (1|category)"
ASKED = [Contrast("saliency", "none", (kind,)) for kind in TRIAL_TYPES]
BINS = 5
"""Of the ranks, in the test of uniformity."""
SETTINGS = SamplerSettings(draws=500)


def lay_out(rng: np.random.Generator) -> pd.DataFrame:
    """Lay out the trials of a study, without responses."""
    rows = [
        (f"p{person}", f"c{rng.integers(CATEGORIES)}", kind, person % 2, person // 2 % 2)
        for person in range(4 * PER_CONDITION)
        for kind in TRIAL_TYPES
        for _ in range(PER_TYPE)
    ]
    frame = pd.DataFrame(rows, columns=["participant", "category", "trial_type", "saliency", "examples"])
    kinds = pd.Categorical(frame["trial_type"], categories=list(TRIAL_TYPES))
    return frame.assign(trial_type=kinds, correct=np.arange(len(frame)) % 2)


def _list_truth(made: Design, drawn: ParameterDraws) -> dict[str, float]:
    """List the parameters of one draw from the prior by name, and the differences in percentage points."""
    one = posterior.Posterior(made, drawn, Priors(), SETTINGS)
    truth = {name: float(values[0, 0]) for name, values in one.list_parameters()}
    points = contrasts.tabulate(one, ASKED)
    return truth | dict(zip(points["contrast"], points["points"], strict=True))


def run(stream: tuple[int, int]) -> dict[str, Any]:
    """Return rank and coverage of each parameter of one study, and whether its fit is to be believed."""
    rng = np.random.default_rng(stream)
    frame = lay_out(rng)
    made = design.build(frame, FORMULA)
    drawn = sampler.sample_prior(made, Priors(), 1, int(rng.integers(2**31)))
    truth = _list_truth(made, drawn)
    frame = frame.assign(correct=predictive.draw_responses(made, drawn, 1, rng)[0].astype(np.int64))
    start = time.process_time()
    fitted = posterior.fit(frame, FORMULA, settings=SETTINGS)
    seconds = time.process_time() - start
    values = {name: draws.ravel() for name, draws in fitted.list_parameters()}
    values |= dict(zip((one.name for one in ASKED), contrasts.draw_points(fitted, ASKED).T, strict=True))
    start = time.process_time()
    blank = _count_blank(frame)
    return {
        "believed": fitted.diagnostics.is_reliable,
        "rhat": fitted.diagnostics.rhat,
        "divergences": fitted.diagnostics.divergences,
        "seconds": seconds,
        "likelihood_seconds": time.process_time() - start,
        "blank": blank,
        "rank": {name: float(np.mean(draws < truth[name])) for name, draws in values.items()},
        "covered": {name: _covers(draws, truth[name]) for name, draws in values.items()},
    }


def _covers(draws: np.ndarray, truth: float) -> bool:
    low, high = np.quantile(draws, (LOW, HIGH))
    return bool(low <= truth <= high)


def _count_blank(frame: pd.DataFrame) -> bool:
    """Tell whether maximum likelihood has an infinite estimate."""
    try:
        return bool(mixed.fit(frame, FORMULA).diverging)
    except ForetellError:
        return True


def time_demo() -> dict[str, float]:
    """Time both fits of the default model, with random slopes, on a study of 80 participants and 24 trials each."""
    frame = pd.concat([lay_out(np.random.default_rng((SEED, k))) for k in range(4)], ignore_index=True)
    people = np.arange(len(frame)) // 24
    frame = frame.assign(participant=[f"p{k}" for k in people], saliency=people % 2, examples=people // 2 % 2)
    frame = frame.assign(item=frame["category"] + " " + frame["trial_type"].astype(str))
    formula = f"correct ~ {DEFAULT['interaction']}"
    made = design.build(frame, formula)
    drawn = sampler.sample_prior(made, Priors(random_sd=0.5), 1, SEED)
    correct = predictive.draw_responses(made, drawn, 1, np.random.default_rng(SEED))[0]
    frame = frame.assign(correct=correct.astype(np.int64))
    start = time.process_time()
    mixed.fit(frame, formula)
    middle = time.process_time()
    posterior.fit(frame, formula)
    end = time.process_time()
    return {"responses": len(frame), "likelihood_seconds": middle - start, "seconds": end - middle}


def measure(studies: int, workers: int | None) -> dict[str, Any]:
    """Measure calibration, coverage and time."""
    streams = [(SEED, k) for k in range(studies)]
    made = parallel.each(partial(run), streams, workers=workers, what="Studies drawn from the priors")
    blank = np.array([one["blank"] for one in made])
    return {
        "studies": studies,
        "participants": 4 * PER_CONDITION,
        "responses": 4 * PER_CONDITION * PER_TYPE * len(TRIAL_TYPES),
        "draws": SETTINGS.draws * sampler.CHAINS,
        "believed": float(np.mean([one["believed"] for one in made])),
        "with_divergences": float(np.mean([one["divergences"] > 0 for one in made])),
        "largest_rhat": float(max(one["rhat"] for one in made)),
        "blank": int(blank.sum()),
        "seconds": float(np.median([one["seconds"] for one in made])),
        "likelihood_seconds": float(np.median([one["likelihood_seconds"] for one in made])),
        "parameters": [_summarise(name, made, blank) for name in made[0]["rank"]],
        "all": _pool(made, blank),
        "demo": time_demo(),
    }


def _summarise(name: str, made: list[dict[str, Any]], blank: np.ndarray) -> dict[str, Any]:
    ranks = np.array([one["rank"][name] for one in made])
    covered = np.array([one["covered"][name] for one in made])
    counts, expected = np.histogram(ranks, bins=BINS, range=(0, 1))[0], len(made) / BINS
    statistic = float(np.sum((counts - expected) ** 2 / expected))
    return {
        "parameter": name,
        "coverage": float(covered.mean()),
        "mean_rank": float(ranks.mean()),
        "p_uniform": float(chi2(BINS - 1).sf(statistic)),
        "coverage_blank": float(covered[blank].mean()) if blank.any() else None,
    }


def _pool(made: list[dict[str, Any]], blank: np.ndarray) -> dict[str, Any]:
    """Coverage over all parameters, with its Monte Carlo error over studies."""
    shares = np.array([np.mean(list(one["covered"].values())) for one in made])
    points = np.array([np.mean([one["covered"][asked.name] for asked in ASKED]) for one in made])
    return {
        "coverage": float(shares.mean()),
        "coverage_error": float(shares.std(ddof=1) / np.sqrt(len(shares))),
        "coverage_points": float(points.mean()),
        "coverage_points_error": float(points.std(ddof=1) / np.sqrt(len(points))),
        "coverage_points_blank": float(points[blank].mean()) if blank.any() else None,
    }


if __name__ == "__main__":
    parser = arguments("bayes_studies")
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--workers", type=int)
    given = parser.parse_args()
    hand_over("bayes_studies", given, lambda: measure(given.studies, given.workers))
