"""Search a mixed model from several points where responses are few, and report how the searches ended.

The likelihood of a few responses can have more than one maximum: one with small random effects and one in which the
fixed effects and the random effects grow together. A single search ends in whichever is nearer to its start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from study.analysis.models.laplace import root
from study.analysis.models.records import Floats

FEW = 200
"""Responses up to which several searches are made: a single one missed the maximum of 22% of simulated data sets with
10 responses, 10% with 20, 3% with 80, 1 in 150 with 200 and none of 150 with 400."""
SDS = (1.0, 4.0, 16.0, 64.0)
"""Standard deviations of the random effects at which the searches start, on the link scale in units of `End.scale`."""
SIGNS = (1.0, 0.0, -1.0)
"""Signs of the first fit's fixed effects, at each of those."""
APART = 1e-3
"""Log-likelihood by which two maxima differ: a likelihood ratio would differ in its third decimal."""
FARTHEST = 900.0
"""Standard deviation beyond which a search has run off: `glmm` itself stops at 1,000."""
_ATTENUATION = 3.0
"""Fixed effects at a standard deviation s are about sqrt(1 + s^2 / 3) times those of a population average, a third
being about the inverse of the logistic distribution's variance (Zeger, Liang & Albert, 1988)."""
_NUDGE = 1.25
"""Factor on the random effects with which a lower end is searched on from: a maximum is found again."""

Blocks = Sequence[tuple[str, Sequence[str], Floats]]


@dataclass(frozen=True)
class End:
    """The end of one search.

    Attributes
    ----------
    sds
        Standard deviation of each random term's first effect.
    beta, theta
        Fixed effects, and the factors' entries, column by column.
    fit
        What the caller makes its result of.
    scale
        Unit of the random effects: the residual standard deviation of a linear model.
    """

    loglik: float
    sds: tuple[float, ...]
    beta: Floats
    theta: Floats
    arrived: bool
    fit: Any
    scale: float = 1.0

    @property
    def is_maximum(self) -> bool:
        """Whether the search arrived at a finite point."""
        return self.arrived and math.isfinite(self.loglik) and self.spread < FARTHEST

    @property
    def spread(self) -> float:
        """The largest standard deviation, in units of the scale."""
        return max(self.sds, default=0.0) / self.scale


Climb = Callable[[Floats, Floats], End]
"""Search from fixed effects and factors."""


def of_fit(raw: Any) -> End:
    """Return the end of a search of `glmm`."""
    theta = [_factor(entries, len(names)) for entries, (_, names) in zip(raw.varcorr, raw.re_groups, strict=False)]
    sds = tuple(math.sqrt(raw.varcorr[k][0]) for k in range(len(theta)))
    beta = np.nan_to_num(np.asarray(raw.beta, dtype=np.float64))
    scale = math.sqrt(raw.dispersion) if raw.family == "gaussian" else 1.0
    entries = np.concatenate([*theta, np.zeros(0)]) / scale
    return End(float(raw.loglik), sds, beta, entries, bool(raw.converged), raw, scale)


def _factor(entries: Any, q: int) -> Floats:
    """Return the factor's entries from those of a covariance."""
    lower = np.zeros((q, q))
    lower.T[np.triu_indices(q)] = np.asarray(entries, dtype=np.float64)
    return root(lower + np.tril(lower, -1).T).T[np.triu_indices(q)]


def compute_lowest(responses: float) -> float:
    """Log-likelihood of as many tosses of a coin: a binomial model that explains less was not found."""
    return -math.log(2) * responses


def is_few(responses: float) -> bool:
    """Tell whether so few responses call for several searches."""
    return responses <= FEW


def count_responses(raw: Any) -> float:
    """Count responses of a fit: rows, or of a binomial model the sum of their weights."""
    is_grouped = raw.family == "binomial" and raw.weights is not None
    return float(np.sum(raw.weights) if is_grouped else raw.nobs)


def search(
    first: End, lowest: float, blocks: Blocks, climb: Climb, sds: Sequence[float] = SDS
) -> tuple[Any, tuple[End, ...]]:
    """Return the fit with the highest likelihood among several searches, and the two highest maxima, if there are two.

    Parameters
    ----------
    first
        The end of the search from the usual start.
    lowest
        Log-likelihood up to which an end is a search that failed.
    blocks
        The random terms, as of `study.analysis.models.formula.blocks`.
    climb
        The same search from another start.
    sds
        Standard deviations to start at.
    """
    ended = [first, *(climb(beta, theta) for beta, theta in points(first, blocks, sds))]
    maxima = sorted((end for end in ended if end.is_maximum and end.loglik > lowest), key=lambda end: -end.loglik)
    best = _find_best(first, maxima, climb)
    if best is None:
        return first.fit, ()
    level = best.loglik
    for end in maxima:
        if end.loglik < level - APART:
            level = end.loglik
            if _is_found_again(end, climb):
                return best.fit, (best, end)
    return best.fit, ()


def _find_best(first: End, maxima: Sequence[End], climb: Climb) -> End | None:
    """Find the highest maximum that a search from its own point does not leave; the first search's among equals."""
    for end in maxima:
        if first.is_maximum and first.loglik > end.loglik - APART:
            return first
        if abs(climb(end.beta, end.theta).loglik - end.loglik) < APART:  # a stop on the way up is no maximum
            return end
    return None


def points(first: End, blocks: Blocks, sds: Sequence[float] = SDS) -> list[tuple[Floats, Floats]]:
    """Return fixed effects and factors at which the searches start."""
    plain = first.beta / _growth(min(first.spread, FARTHEST))
    return [(sign * plain * _growth(sd), make_factors(sd, blocks)) for sd, sign in product(sds, SIGNS)]


def _growth(sd: float) -> float:
    return math.sqrt(1 + sd**2 / _ATTENUATION)


def make_factors(sd: float, blocks: Blocks) -> Floats:
    """Return uncorrelated effects that each move the linear predictor by `sd`, whatever the unit of their column."""
    parts = []
    for _, _, values in blocks:
        size = np.sqrt(np.mean(values**2, axis=0))
        parts.append(np.diag(sd / np.where(size > 0, size, 1.0)).T[np.triu_indices(values.shape[1])])
    return np.concatenate(parts)


def _is_found_again(end: End, climb: Climb) -> bool:
    """Tell whether the search comes back to a maximum from a little further out."""
    out = np.where(np.abs(end.theta) > 0, end.theta * _NUDGE, 0.1)
    return abs(climb(end.beta, out).loglik - end.loglik) < APART


def with_maxima(raw: Any, maxima: Sequence[End]) -> Any:
    """Add the maxima to the diagnostics of a fit, where `study.analysis.models.sentences` finds them."""
    ends = tuple((end.loglik, max(end.sds)) for end in maxima)
    return replace(raw, diagnostics={**raw.diagnostics, "maxima": ends}) if ends else raw
