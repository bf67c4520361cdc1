"""Confidence intervals of a fitted mixed model: Wald's, and those of the profile likelihood.

The profile interval of a parameter holds every value that a likelihood-ratio test does not reject: the others are
maximised again at each value (Venzon & Moolgavkar, 1988, doi:10.2307/2347496; Bates et al., 2015, section 5.1). It has
no need of symmetry, so it also serves standard deviations, and it says so where the data set no bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import brentq, minimize
from scipy.stats import chi2, norm, t

from core.errors import ForetellError
from core.types import Progress, silent
from study.analysis.models import laplace
from study.analysis.models.laplace import Laplace
from study.analysis.models.records import Coefficient, Floats, MixedModel, RandomEffect
from study.analysis.models.sentences import words
from study.analysis.models.threads import one_blas_thread

LEVEL = 0.95
_TIGHT = 1e-3
"""Gradient in whitened parameters at which a profile point is kept: its log-likelihood is then off by 5e-7."""
_SEARCHES = 12
_FAR = 60.0
"""Standard errors from the estimate beyond which no bound is looked for."""


def wald(model: MixedModel, level: float = LEVEL) -> pd.DataFrame:
    """Tabulate term, estimate, low, high of each coefficient: estimate -+ quantile times standard error.

    The quantile is the normal's, or Student's where the coefficient has degrees of freedom. Coefficients without a
    standard error have no interval (NaN).
    """
    _check(level)
    rows = [(c.term, model.limit(c), *find_wald_limits(c, level)) for c in model.coefficients]
    return pd.DataFrame(rows, columns=["term", "estimate", "low", "high"])


def find_wald_limits(coefficient: Coefficient, level: float = LEVEL) -> tuple[float, float]:
    """Find the limits of Wald's interval of one coefficient; NaN without a standard error."""
    upper, df = (1 + level) / 2, coefficient.df
    quantile = norm.ppf(upper) if df is None else t.ppf(upper, df)
    half = math.nan if coefficient.se is None else float(quantile) * coefficient.se
    return coefficient.estimate - half, coefficient.estimate + half


def odds_ratios(model: MixedModel, level: float = LEVEL) -> pd.DataFrame:
    """Tabulate term, odds_ratio, low, high of each coefficient of a logit model: `wald`, exponentiated."""
    table = wald(model, level)
    with np.errstate(over="ignore"):
        made = np.exp(table[["estimate", "low", "high"]])
    return table[["term"]].join(made.rename(columns={"estimate": "odds_ratio"}))


@one_blas_thread()
def profile(
    frame: pd.DataFrame,
    model: MixedModel,
    terms: Sequence[str] | None = None,
    *,
    level: float = LEVEL,
    progress: Progress = silent,
) -> pd.DataFrame:
    """Return the profile-likelihood intervals and likelihood-ratio tests of single coefficients.

    Parameters
    ----------
    frame
        The rows the model was fitted to.
    terms
        Of these coefficients; of all, if None.

    Returns
    -------
    pandas.DataFrame
        term, estimate, low, high (infinite where the data set no bound), chisq and p of the test that the
        coefficient is 0. Coefficients that diverge have neither.

    Raises
    ------
    ForetellError
        The model is not binomial, ordinal or Poisson, was fitted by quadrature, or a term is unknown.
    """
    _check(level)
    known = [c.term for c in model.coefficients]
    for term in terms or ():
        if term not in known:
            raise ForetellError(f"The model has no coefficient {term!r}; it has {', '.join(known)}.")
    top = _Top.of(frame, model)
    chosen = [c for c in model.coefficients if terms is None or c.term in terms]
    rows = []
    for done, c in enumerate(chosen):
        progress(done, len(chosen), f"Profile of {words(c.term)}")
        rows.append(_coefficient(top, model, c, known.index(c.term), level))
    progress(len(chosen), len(chosen), "Profiles done")
    return pd.DataFrame(rows, columns=["term", "estimate", "low", "high", "chisq", "p"])


@one_blas_thread()
def variance_components(frame: pd.DataFrame, model: MixedModel, *, level: float = LEVEL) -> pd.DataFrame:
    """Tabulate group, term, sd, low, high, method: the standard deviations with their intervals.

    ``profile`` where the likelihood is known at every value (binomial, ordinal or Poisson, Laplace); else ``wald``, on
    the logarithm of the standard deviation, missing where it has no standard error (linear models). A lower bound of 0
    means that the data are as likely without any variance there.
    """
    _check(level)
    profiled = model.is_laplace
    rows = []
    for effect in model.random:
        low, high = _profile_sd(frame, model, effect, level) if profiled else _wald_sd(effect, level)
        rows.append((effect.group, effect.term, effect.sd, low, high, "profile" if profiled else "wald"))
    return pd.DataFrame(rows, columns=["group", "term", "sd", "low", "high", "method"])


@one_blas_thread()
def conditional_modes(frame: pd.DataFrame, model: MixedModel) -> pd.DataFrame:
    """Tabulate group, level, term, mode, sd: each level's deviation (link scale), its spread given the parameters."""
    likelihood, parameters = laplace.of(frame, model)
    spread = likelihood.at(parameters).spread
    rows, start = [], 0
    for block, levels in zip(model.blocks, [b.levels for b in likelihood.blocks], strict=True):
        q, factor = len(block.terms), laplace.root(block.covariance)
        for number, level in enumerate(levels):
            at = slice(start + number * q, start + (number + 1) * q)
            sds = np.sqrt(np.diag(factor @ spread[at, at] @ factor.T))
            modes = block.modes.loc[level]
            rows += [
                (block.group, level, term, float(modes[term]), float(sd))
                for term, sd in zip(block.terms, sds, strict=True)
            ]
        start += q * len(levels)
    return pd.DataFrame(rows, columns=["group", "level", "term", "mode", "sd"])


def _check(level: float) -> None:
    if not 0 < level < 1:
        raise ForetellError(f"An interval of level {level} does not exist: choose one between 0 and 1, like 0.95.")


@dataclass(frozen=True)
class _Top:
    """The maximum, its curvature, and the way to the maximum under a constraint.

    `free` are the parameters that a profile maximises over: all but the coefficients that diverge.
    """

    likelihood: Laplace
    parameters: Floats
    loglik: float
    covariance: Floats
    free: list[int]

    @classmethod
    def of(cls, frame: pd.DataFrame, model: MixedModel, first: Sequence[str | None] = ()) -> _Top:
        likelihood, parameters = laplace.of(frame, model, first)
        held = [k for k, c in enumerate(model.coefficients) if c.term in model.diverging]
        free = [k for k in range(likelihood.parameters) if k not in held]
        loglik = likelihood.at(parameters).loglik
        return cls(likelihood, parameters, loglik, laplace.curvature(likelihood, parameters, free), free)

    def root(self, j: int, value: float) -> float:
        """Compute the signed root of the likelihood ratio at parameter j = value: normal, were the top a parabola."""
        fallen = 2.0 * (self.loglik - self._maximum(j, value))
        return math.copysign(math.sqrt(max(0.0, fallen)), value - self.parameters[j])

    def _maximum(self, j: int, value: float) -> float:
        """Maximise the log-likelihood over the others, from where a parabola would have it, in its own scales."""
        place = self.free.index(j)
        others = [k for k in range(len(self.free)) if k != place]
        beside = self.covariance[others, place] / self.covariance[place, place]
        spread = self.covariance[np.ix_(others, others)] - np.outer(beside, self.covariance[place, others])
        scale = laplace.root(spread)
        start = self.parameters.copy()
        start[j] = value
        index = [self.free[k] for k in others]
        start[index] += beside * (value - self.parameters[j])

        def loss(z: Floats) -> tuple[float, Floats]:
            at = start.copy()
            at[index] += scale @ z
            point = self.likelihood.at(at)
            return self.loglik - point.loglik, -scale.T @ point.gradient[index]

        return self.loglik - float(minimize(loss, np.zeros(len(index)), jac=True, options={"gtol": _TIGHT}).fun)


def _coefficient(top: _Top, model: MixedModel, c: Coefficient, j: int, level: float) -> tuple[object, ...]:
    if c.term in model.diverging:
        return (c.term, model.limit(c), math.nan, math.nan, math.nan, math.nan)
    quantile = float(norm.ppf((1 + level) / 2))
    chisq = top.root(j, 0.0) ** 2
    return (
        c.term,
        c.estimate,
        _bound(top, j, -quantile),
        _bound(top, j, quantile),
        chisq,
        float(chi2.sf(chisq, 1)),
    )


def _bound(top: _Top, j: int, target: float) -> float:
    """Find where the signed root is `target`, by a few secant steps as it is nearly linear; infinite if never."""
    place = top.free.index(j)
    estimate, se = float(top.parameters[j]), math.sqrt(top.covariance[place, place])
    before, root_before = estimate, 0.0
    value = estimate + target * se
    for _ in range(_SEARCHES):
        root = top.root(j, value)
        if abs(root - target) < 1e-5:
            return value
        slope = (root - root_before) / (value - before)
        before, root_before = value, root
        value += (target - root) / slope if slope * se > 1e-6 else math.copysign(_FAR * se, target)
        if abs(value - estimate) > _FAR * se:
            return math.copysign(math.inf, target)
    return value


def _profile_sd(frame: pd.DataFrame, model: MixedModel, effect: RandomEffect, level: float) -> tuple[float, float]:
    """Profile a standard deviation: the block's terms are reordered so that it is a parameter of its own."""
    number = next(k for k, b in enumerate(model.blocks) if b.group == effect.group and effect.term in b.terms)
    first = [effect.term if k == number else None for k in range(len(model.blocks))]
    top = _Top.of(frame, model, first)
    widths = [len(block.terms) for block in model.blocks[:number]]
    j = top.likelihood.fixed_size + sum(laplace.triangle_size(q) for q in widths)
    quantile = float(norm.ppf((1 + level) / 2))
    sd = float(top.parameters[j])
    low = 0.0
    if sd > 0 and top.root(j, 0.0) < -quantile:
        low = float(brentq(lambda value: top.root(j, value) + quantile, 0.0, sd, xtol=1e-6))
    return low, _bound(top, j, quantile)


def _wald_sd(effect: RandomEffect, level: float) -> tuple[float, float]:
    if effect.se is None or effect.sd <= 0:
        return math.nan, math.nan
    ratio = math.exp(float(norm.ppf((1 + level) / 2)) * effect.se / effect.sd)
    return effect.sd / ratio, effect.sd * ratio
