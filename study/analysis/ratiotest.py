"""A likelihood-ratio test by parametric bootstrap: its distribution where chi-square is only a promise.

Data are drawn from the smaller model as fitted, random effects again, and both models are fitted to each; p is the
share of draws, with the observed value among them, whose statistic is at least the observed one (Davison & Hinkley,
1997, eq. 4.11; Halekoh & Højsgaard, 2014, doi:10.18637/jss.v059.i09).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import chi2

from core.errors import ForetellError
from core.types import Progress, silent
from study.analysis import formula as formulas
from study.analysis import laplace, mixed
from study.analysis.records import Floats, MixedModel
from study.workspace import parallel


@dataclass(frozen=True)
class BootstrapTest:
    """The outcome.

    Attributes
    ----------
    chisq, df
        The observed statistic and its degrees of freedom.
    p
        By the bootstrap, with its Monte Carlo standard error `p_error`.
    p_chisq
        By the chi-square distribution.
    draws
        Statistics under the smaller model, sorted; those of data without a fit are left out and counted in `failed`.
    """

    chisq: float
    df: int
    p: float
    p_error: float
    p_chisq: float
    draws: Floats
    failed: int


def bootstrap(
    frame: pd.DataFrame,
    smaller: MixedModel,
    larger: MixedModel,
    *,
    seed: int,
    resamples: int = 1000,
    workers: int | None = None,
    progress: Progress = silent,
) -> BootstrapTest:
    """Test the larger of two nested binomial models.

    Raises
    ------
    ForetellError
        The models are of different rows or not binomial, or too few resamples.
    """
    if resamples < 1:
        raise ForetellError(f"resamples is {resamples}: draw at least 1, and 1,000 for a p-value of three digits.")
    if smaller.n != larger.n or {smaller.family, larger.family} != {"binomial"}:
        raise ForetellError("The bootstrap compares two binomial models of the same rows.")
    data, text = formulas.prepare_formula(frame, smaller.formula)
    work = partial(_draw, data, text, smaller, formulas.prepare_formula(frame, larger.formula)[1])
    items = [(seed, number) for number in range(resamples)]
    ratios = parallel.each(work, items, workers=workers, what="Data under the smaller model", progress=progress)
    draws = np.sort([value for value in ratios if not math.isnan(value)])
    chisq, df = max(0.0, 2 * (larger.loglik - smaller.loglik)), larger.df - smaller.df
    p = float((1 + np.sum(draws >= chisq)) / (1 + len(draws)))
    error = math.sqrt(p * (1 - p) / (1 + len(draws)))
    return BootstrapTest(chisq, df, p, error, float(chi2.sf(chisq, df)), draws, resamples - len(draws))


def simulate_responses(frame: pd.DataFrame, formula: str, model: MixedModel, rng: np.random.Generator) -> Floats:
    """Simulate (n,) successes from a fitted binomial model, with new participants and new categories."""
    eta = model.design(frame, formula) @ np.array([c.estimate for c in model.coefficients])
    columns = formulas.slopes(frame, formula)
    for block in model.blocks:
        codes, names = formulas.levels(frame, block.group)
        effects = rng.standard_normal((len(names), len(block.terms))) @ laplace.root(block.covariance).T
        eta = eta + np.sum(np.column_stack([columns[term] for term in block.terms]) * effects[codes], axis=1)
    eta = eta + formulas.offset(frame, formula)
    responses = formulas.response(frame, formula, model.weights)[1].astype(np.int64)
    return rng.binomial(responses, expit(eta)).astype(np.float64)


def _draw(frame: pd.DataFrame, small: str, model: MixedModel, large: str, stream: tuple[int, int]) -> float:
    """Draw one statistic under the smaller model; NaN where a fit failed."""
    hits = simulate_responses(frame, small, model, np.random.default_rng(stream))
    responses = formulas.response(frame, small, model.weights)[1]
    data = frame.assign(foretell_hits=hits, foretell_misses=responses - hits)
    try:
        fits = [
            mixed.fit(data, f"cbind(foretell_hits, foretell_misses) ~ {f.split('~', 1)[1]}") for f in (small, large)
        ]
    except ForetellError:
        return math.nan
    return max(0.0, 2.0 * (fits[1].loglik - fits[0].loglik))
