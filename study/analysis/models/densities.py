"""Log-densities of a response given its linear predictor, with the derivatives that the Laplace approximation needs.

Each is log-concave, so the mode of the random effects is unique. The weight is minus the second derivative itself, as
in glmmTMB; of the logit and the logarithm it is also the expected one, which lme4 takes for the probit instead.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.special import betaln, expit, gammaln, log_ndtr

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Density(ABC):
    """Of y among m: successes among responses, or a count times its prior weight m. All arrays are (n,)."""

    is_count = False
    """Whether responses are counts without an upper limit."""

    @abstractmethod
    def log(self, eta: Floats, y: Floats, m: Floats) -> Floats:
        """Return the log-density without the part that does not depend on eta."""

    @abstractmethod
    def differentiate(self, eta: Floats, y: Floats, m: Floats) -> tuple[Floats, Floats, Floats]:
        """Return its first derivative by eta, minus its second, and minus its third."""

    def constant(self, y: Floats, m: Floats) -> float:
        """Return the sum of what `log` leaves out: here the binomial coefficients."""
        return float(np.sum(np.where(m > 1, -betaln(m - y + 1, y + 1) - np.log(m + 1), 0.0)))


class Logit(Density):
    """Binomial, log-odds eta."""

    def log(self, eta: Floats, y: Floats, m: Floats) -> Floats:
        return np.asarray(y * eta - m * np.logaddexp(0.0, eta))

    def differentiate(self, eta: Floats, y: Floats, m: Floats) -> tuple[Floats, Floats, Floats]:
        p = expit(eta)
        weight = m * p * (1.0 - p)
        return y - m * p, weight, weight * (1.0 - 2.0 * p)


class Probit(Density):
    """Binomial, probability Phi(eta)."""

    def log(self, eta: Floats, y: Floats, m: Floats) -> Floats:
        return np.asarray(y * log_ndtr(eta) + (m - y) * log_ndtr(-eta))

    def differentiate(self, eta: Floats, y: Floats, m: Floats) -> tuple[Floats, Floats, Floats]:
        hit, miss = _differentiate_log_phi(eta), _differentiate_log_phi(-eta)
        first, second, third = (y * a + sign * (m - y) * b for a, b, sign in zip(hit, miss, _SIGNS, strict=True))
        return first, second, third


class Log(Density):
    """Poisson, logarithm of the rate eta."""

    is_count = True

    def log(self, eta: Floats, y: Floats, m: Floats) -> Floats:
        return np.asarray(y * eta - m * np.exp(eta))

    def differentiate(self, eta: Floats, y: Floats, m: Floats) -> tuple[Floats, Floats, Floats]:
        rate = m * np.exp(eta)
        return y - rate, rate, rate

    def constant(self, y: Floats, m: Floats) -> float:
        counts = np.divide(y, m, where=m > 0, out=np.zeros_like(y))
        return -float(np.sum(m * gammaln(counts + 1.0)))


_SIGNS = (-1.0, 1.0, -1.0)
"""Of the derivatives of a failure's log Phi(-eta), in which eta has the other sign."""


def _differentiate_log_phi(eta: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the first derivative of log Phi, r = phi / Phi, minus its second, r (eta + r), and minus its third."""
    ratio = np.exp(-0.5 * eta**2 - 0.5 * math.log(2.0 * math.pi) - log_ndtr(eta))
    return ratio, ratio * (eta + ratio), ratio * (1.0 - (eta + ratio) * (eta + 2.0 * ratio))


class CumulativeLogit(Density):
    """Levels 1 to K in their order: log-odds of a level up to k are the threshold k minus eta (McCullagh, 1980).

    Its own parameters are the first threshold and the logarithms of the distances to the next, so that every value of
    them has its thresholds in order. `m` weighs rows.

    Parameters
    ----------
    thresholds
        (S, K - 1) of each stratum, in increasing order.
    strata
        (n,) stratum of each row, from 0; one for all if None.
    """

    def __init__(self, thresholds: Floats | None = None, strata: Integers | None = None) -> None:
        self.strata = np.zeros(1, dtype=np.int64) if strata is None else strata
        self.thresholds = np.zeros((int(self.strata.max()) + 1, 1)) if thresholds is None else thresholds
        edge = np.full((len(self.thresholds), 1), np.inf)
        self._edges = np.hstack([-edge, self.thresholds, edge])

    def log(self, eta: Floats, y: Floats, m: Floats) -> Floats:
        upper, lower, gap = self._cut(eta, y)
        # F(a) - F(b) = F(a) F(-b) (1 - exp(b - a)) loses no digits far out
        return np.asarray(m * (np.log1p(-np.exp(-gap)) - np.logaddexp(0.0, -upper) - np.logaddexp(0.0, lower)))

    def differentiate(self, eta: Floats, y: Floats, m: Floats) -> tuple[Floats, Floats, Floats]:
        upper, lower, _ = self._cut(eta, y)
        a, b = expit(upper), expit(lower)
        slope_a, slope_b = a * (1.0 - a), b * (1.0 - b)
        third = -slope_a * (1.0 - 2.0 * a) - slope_b * (1.0 - 2.0 * b)
        return m * (a + b - 1.0), m * (slope_a + slope_b), m * third

    def constant(self, *_: Floats) -> float:
        return 0.0

    def count_own(self, y: Floats) -> int:
        """Count its own parameters S (K - 1), for responses of these levels."""
        return len(self.thresholds) * (int(y.max()) - 1)

    def at(self, own: Floats) -> CumulativeLogit:
        """Return the density at its own parameters (S (K - 1),)."""
        first, distances = np.split(own.reshape(len(self.thresholds), -1), [1], axis=1)
        cuts = np.hstack([first, first + np.cumsum(np.exp(distances), axis=1)])
        return CumulativeLogit(cuts, self.strata)

    @property
    def own(self) -> Floats:
        """Its own parameters (S (K - 1),), stratum by stratum."""
        return np.hstack([self.thresholds[:, :1], np.log(np.diff(self.thresholds, axis=1))]).ravel()

    @property
    def jacobian(self) -> Floats:
        """(S (K - 1), S (K - 1)) derivatives of each threshold (a row) by the own parameters."""
        ones = np.ones((len(self.thresholds), 1))
        distances = np.hstack([ones, np.diff(self.thresholds, axis=1)])
        return np.asarray(block_diag(*(np.tril(np.tile(row, (len(row), 1))) for row in distances)), dtype=np.float64)

    def differentiate_own(self, eta: Floats, y: Floats, m: Floats) -> tuple[Floats, Floats, Floats]:
        """Return (S (K - 1), n) by its own parameters: of the log-density, its first by eta, minus its second."""
        upper, lower, gap = self._cut(eta, y)
        a, b = expit(upper), expit(lower)
        slope_a, slope_b = a * (1.0 - a), b * (1.0 - b)
        with np.errstate(over="ignore"):
            narrow = 1.0 / np.expm1(gap)
        by_upper = (1.0 - a + narrow, slope_a, slope_a * (1.0 - 2.0 * a))
        by_lower = (-b - narrow, slope_b, slope_b * (1.0 - 2.0 * b))
        strata, cuts = self.thresholds.shape
        own = (self.strata == np.repeat(np.arange(strata), cuts)[:, None]) * m
        places = np.tile(np.arange(1, cuts + 1), strata)[:, None]
        above, below = (y == places) * own, (y - 1 == places) * own
        first, second, third = (
            self.jacobian.T @ (above * u + below * v) for u, v in zip(by_upper, by_lower, strict=True)
        )
        return first, second, third

    def _cut(self, eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Return (n,) the thresholds above and below each response, less eta, and the distance between the two."""
        level = y.astype(np.int64)
        upper, lower = self._edges[self.strata, level], self._edges[self.strata, level - 1]
        return upper - eta, lower - eta, upper - lower


_DENSITIES: dict[tuple[str, str], Density] = {
    ("binomial", "logit"): Logit(),
    ("binomial", "probit"): Probit(),
    ("poisson", "log"): Log(),
    ("ordinal", "logit"): CumulativeLogit(),
}
_USUAL = {"binomial": "logit", "poisson": "log", "ordinal": "logit"}


def find(family: str, link: str | None) -> Density | None:
    """Find the density of a family with its own link (None) or another; None where there is none here."""
    return _DENSITIES.get((family, link or _USUAL.get(family, "")))
