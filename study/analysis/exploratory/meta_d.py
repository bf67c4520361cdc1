"""meta-d': the sensitivity d' that an ideal observer with the same confidence ratings would have.

Maximum likelihood of Maniscalco & Lau (2012, doi:10.1016/j.concog.2011.09.021) for normal evidence with equal
variances: given the response, ratings come from criteria on an axis with d' = meta-d', whose type 1 criterion is the
same relative to it, c / d'. Standard errors are over participants: the scores of both likelihoods are stacked for each
participant (M-estimation; Stefanski & Boos, 2002, doi:10.1198/000313002753631330), so that those of d' and c count too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_ndtr
from scipy.stats import norm

from core.errors import ForetellError

Floats = NDArray[np.float64]
STEP = 1e-4
"""Of numeric derivatives, whose functions have values and parameters about 1."""
SIDES = 2
"""Responses of one sort, and signals that are there or not."""


@dataclass(frozen=True)
class MetaD:
    """Estimates over participants, with the covariance of (d', meta-d').

    Attributes
    ----------
    participants
        Whose responses they are from: intervals have a degree of freedom less.
    """

    dprime: float
    meta_d: float
    covariance: Floats
    participants: int

    @property
    def meta_d_se(self) -> float:
        """Standard error of meta-d'."""
        return float(np.sqrt(self.covariance[1, 1]))

    @property
    def efficiency(self) -> float:
        """The ratio meta-d' / d': 1 where confidence uses all the evidence that the response used."""
        return self.meta_d / self.dprime

    @property
    def efficiency_se(self) -> float:
        """Standard error of the ratio (delta method)."""
        gradient = np.array([-self.efficiency, 1.0]) / self.dprime
        return float(np.sqrt(gradient @ self.covariance @ gradient))


def fit(counts: Floats) -> MetaD:
    """Estimate d' and meta-d'.

    Parameters
    ----------
    counts
        Responses (participants, 2, 2, ratings): by whether the signal is there, whether it was reported, and the rating
        of confidence, the lowest first.

    Raises
    ------
    ForetellError
        d' is not finite or not above 0, or ratings do not differ.
    """
    total = counts.sum(axis=0)
    dprime, criterion = _find_type_1(total.sum(axis=2))
    ratings = [_drop_empty(counts[:, :, said, :]) for said in range(SIDES)]
    if max(one.shape[2] for one in ratings) < 2:
        raise ForetellError("the ratings of confidence do not differ")
    second = np.concatenate([one.reshape(len(counts), -1) for one in ratings], axis=1)
    sizes = [one.shape[2] for one in ratings]

    def loss(free: Floats) -> float:
        return -float(second.sum(axis=0) @ _rate(np.array([dprime, criterion, *free]), sizes))

    start = np.array([dprime, *np.zeros(sum(sizes) - SIDES)])
    best = minimize(loss, start, method="BFGS")
    theta = np.array([dprime, criterion, *best.x])
    first = counts.sum(axis=3).reshape(len(counts), -1)
    covariance = _stack(theta, [(first, _respond), (second, lambda at: _rate(at, sizes))])
    keep = np.ix_([0, 2], [0, 2])
    return MetaD(dprime, float(theta[2]), covariance[keep], len(counts))


def _find_type_1(counts: Floats) -> tuple[float, float]:
    """Return d' and the criterion of (signal, said) counts."""
    reported = counts[:, 1] / counts.sum(axis=1)
    misses, hits = norm.ppf(reported)
    dprime = float(hits - misses)
    if not np.isfinite(dprime):
        raise ForetellError("participants always or never reported an error, so that d' is not finite")
    if dprime <= 0:
        raise ForetellError("d' is not above 0: participants did not tell the AI's errors from its correct predictions")
    return dprime, -float(hits + misses) / 2


def _drop_empty(counts: Floats) -> Floats:
    """Drop the ratings that nobody gave: their criteria could be anywhere."""
    return counts[:, :, counts.sum(axis=(0, 1)) > 0]


def _respond(theta: Floats) -> Floats:
    """Return the log-probability of each response (signal x said)."""
    dprime, criterion = theta[:2]
    means = np.array([-dprime, dprime]) / 2
    return np.column_stack([log_ndtr(criterion - means), log_ndtr(means - criterion)]).ravel()


def _rate(theta: Floats, sizes: list[int]) -> Floats:
    """Return the log-probability of each rating given signal and response (said, signal, rating)."""
    dprime, criterion, meta_d = theta[:3]
    bound = criterion * meta_d / dprime
    widths = np.split(np.exp(theta[3:]), [sizes[0] - 1])
    parts = []
    for said, own in enumerate(widths):
        away = np.concatenate([[0.0], np.cumsum(own)])  # of each rating's least evidence from the type 1 criterion
        for mean in (-meta_d / 2, meta_d / 2):
            shift = mean - bound if said else bound - mean
            tail = log_ndtr(shift - away)  # log-probability of so much evidence or more, on this side
            nearer = tail[:-1] + np.log1p(-np.exp(np.minimum(tail[1:] - tail[:-1], -1e-12)))
            parts.append(np.append(nearer, tail[-1]) - tail[0])
    return np.concatenate(parts)


def _stack(theta: Floats, parts: list[tuple[Floats, Callable[[Floats], Floats]]]) -> Floats:
    """Return the covariance (p, p) of estimates that solve the scores of both likelihoods, participants independent.

    The first likelihood determines the first two parameters, the second the others.
    """
    owners = [range(2), range(2, len(theta))]
    scores, bread = [], []
    for (counts, logs), own in zip(parts, owners, strict=True):
        scores.append(np.column_stack([counts @ _differentiate(logs, theta, k) for k in own]))
        for k in own:
            slope = partial(_differentiate, logs, k=k)
            bread.append([counts.sum(axis=0) @ _differentiate(slope, theta, j) for j in range(len(theta))])
    score = np.column_stack(scores)
    people = len(score)
    inverse = np.linalg.pinv(np.array(bread))
    return np.asarray(inverse @ (score.T @ score) @ inverse.T * people / max(people - 1, 1), dtype=np.float64)


def _differentiate(function: Callable[[Floats], Floats], theta: Floats, k: int) -> Floats:
    """Differentiate a function by one parameter (central difference)."""
    step = np.zeros(len(theta))
    step[k] = STEP
    return (function(theta + step) - function(theta - step)) / (2 * STEP)


def bin_levels(confidence: Floats, most: int = 4, distinct: int = 10) -> NDArray[np.int64]:
    """Number ratings from 0: values as they are where at most `distinct`, else `most` bins of as many ratings each."""
    values, place = np.unique(confidence, return_inverse=True)
    if len(values) <= distinct:
        return np.asarray(place, dtype=np.int64)
    cuts = np.quantile(confidence, np.linspace(0, 1, most + 1)[1:-1])
    return np.asarray(np.searchsorted(np.unique(cuts), confidence, side="left"), dtype=np.int64)
