"""Corrections of several tests and their intervals: Holm's, Tukey's and the single-step max-t."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtr, fdtr, ndtri
from scipy.stats import qmc, studentized_range, t

from study.analysis.models.records import Floats

Adjustment = Literal["none", "holm", "tukey", "mvt"]
ADJUSTMENTS: tuple[Adjustment, ...] = get_args(Adjustment)
IN_WORDS = {
    "none": "uncorrected",
    "holm": "corrected by Holm's method, the intervals by Bonferroni's",
    "tukey": "corrected by Tukey's method",
    "mvt": "corrected by the distribution of the largest |t| (single-step)",
}
_RINGS = 300
"""Gauss-Legendre nodes over the sphere in three dimensions: the error of a p is then below 1e-6."""
_SOBOL = 17
"""Binary logarithm of the points on a sphere in more dimensions: the error of a p is then about 1e-5."""
_BINS = 4096
"""Into so many means are the points' sorted maxima averaged, which changes a p by less than 1e-8."""


def holm(p: Floats) -> Floats:
    """Correct p-values for their number (Holm, 1979); NaN remains and does not count.

    Not by statsmodels: its correction collects garbage, 0.2 s in a process that holds pages and networks.
    """
    tested = np.flatnonzero(~np.isnan(p))
    ordered = tested[np.argsort(p[tested], kind="stable")]
    adjusted = np.full(len(p), np.nan)
    adjusted[ordered] = np.minimum(np.maximum.accumulate(p[ordered] * np.arange(len(ordered), 0, -1)), 1.0)
    return adjusted


def adjust(
    method: Adjustment, statistic: Floats, df: Floats, covariance: Floats, means: int, level: float
) -> tuple[Floats, Floats]:
    """Return corrected p-values (m,), and the standard errors (m,) on each side of an interval that cover together.

    Parameters
    ----------
    statistic, df
        (m,) t of each contrast with its degrees of freedom, infinite for z; NaN where there is no test.
    covariance
        (m, m) of the contrasts' estimates.
    means
        Number of means that are compared in pairs (Tukey).
    """
    size, tested = np.abs(statistic), ~np.isnan(statistic)
    single = t(df)
    p = 2 * single.sf(size)
    if method == "none" or tested.sum() < 2:
        return p, single.ppf((1 + level) / 2)
    if method == "holm":
        return holm(p), single.ppf(1 - (1 - level) / (2 * tested.sum()))
    if method == "tukey":
        quantile = {value: studentized_range.ppf(level, means, value) / np.sqrt(2) for value in set(df[tested])}
        halves = np.array([quantile.get(value, np.nan) for value in df])
        return np.asarray(studentized_range.sf(np.sqrt(2) * size, means, df)), halves
    p, half = np.full(len(size), np.nan), np.full(len(size), np.nan)
    largest = MaximumT(covariance[np.ix_(tested, tested)], float(df[tested].min()))
    p[tested] = [largest.compute_tail(value) for value in size[tested]]
    half[tested] = largest.compute_quantile(level)
    return p, half


class MaximumT:
    """The distribution of the largest |t| of m correlated estimates with common degrees of freedom.

    With estimates A z of rank r, z = R u for u uniform on the sphere and R^2 chi-square (of t: r F(r, df)), so that
    P(max |t| > c) = E_u P(R > c / max_i |a_i u|), an average over directions of a known tail (Genz & Bretz, 2009,
    doi:10.1007/978-3-642-01689-9, section 4.1). It is exact up to rank 1, and deterministic at any rank.

    Parameters
    ----------
    covariance
        (m, m) of the estimates, of any rank above 0.
    df
        Degrees of freedom, infinite for the normal distribution.
    """

    def __init__(self, covariance: Floats, df: float) -> None:
        sd = np.sqrt(np.diag(covariance))
        values, vectors = np.linalg.eigh(covariance / np.outer(sd, sd))
        kept = values > 1e-10 * values[-1]
        root = vectors[:, kept] * np.sqrt(values[kept])
        self._rank, self._df = int(kept.sum()), df
        self._tests = len(sd)
        directions, weights = _cover_sphere(self._rank)
        self._maxima, self._weights = _bin(np.abs(directions @ root.T).max(axis=1), weights)

    def compute_tail(self, value: float) -> float:
        """Compute the probability that the largest |t| is above a value."""
        square = (value / self._maxima) ** 2
        below = chdtr(self._rank, square) if np.isinf(self._df) else fdtr(self._rank, self._df, square / self._rank)
        return float(max(0.0, self._weights @ (1.0 - below)))

    def compute_quantile(self, level: float) -> float:
        """Compute the value that the largest |t| is below with probability `level`."""
        low, high = (float(t.ppf(1 - (1 - level) / (2 * tests), self._df)) for tests in (1, self._tests))
        if high - low < 1e-12:
            return low
        return float(brentq(lambda value: self.compute_tail(value) - (1 - level), 0.999 * low, 1.001 * high, xtol=1e-9))


def _cover_sphere(rank: int) -> tuple[Floats, Floats]:
    """Return directions (n, rank) and weights (n,) that average a symmetric function over the sphere."""
    if rank == 1:
        return np.ones((1, 1)), np.ones(1)
    if rank == 2:
        angle = (np.arange(2**14) + 0.5) * np.pi / 2**14
        return np.column_stack([np.cos(angle), np.sin(angle)]), np.full(2**14, 2.0**-14)
    if rank == 3:
        heights, weights = np.polynomial.legendre.leggauss(_RINGS)
        heights, weights = heights[heights > 0], weights[heights > 0]
        angle = (np.arange(4 * _RINGS) + 0.5) * 2 * np.pi / (4 * _RINGS)
        radius = np.sqrt(1 - heights**2)
        ring = (
            np.outer(radius, np.cos(angle)),
            np.outer(radius, np.sin(angle)),
            np.outer(heights, np.ones_like(angle)),
        )
        return np.stack(ring, axis=-1).reshape(-1, 3), np.repeat(weights, len(angle)) / (weights.sum() * len(angle))
    normal = ndtri(qmc.Sobol(rank, scramble=True, rng=0).random_base2(_SOBOL))
    return normal / np.linalg.norm(normal, axis=1, keepdims=True), np.full(len(normal), 1.0 / len(normal))


def _bin(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Average sorted values in bins of nearly the same number."""
    order = np.argsort(values)
    starts = np.unique(np.linspace(0, len(values), min(_BINS, len(values)), endpoint=False).astype(int))
    total = np.add.reduceat(weights[order], starts)
    return np.add.reduceat((values * weights)[order], starts) / total, total
