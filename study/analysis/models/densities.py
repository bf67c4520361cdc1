"""Log-densities of a response given its linear predictor, with the derivatives that the Laplace approximation needs.

Each is log-concave, so the mode of the random effects is unique. The weight is minus the second derivative itself, as
in glmmTMB; of the logit and the logarithm it is also the expected one, which lme4 takes for the probit instead.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, expit, gammaln, log_ndtr

Floats = NDArray[np.float64]


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


_DENSITIES: dict[tuple[str, str], Density] = {
    ("binomial", "logit"): Logit(),
    ("binomial", "probit"): Probit(),
    ("poisson", "log"): Log(),
}
_USUAL = {"binomial": "logit", "poisson": "log"}


def find(family: str, link: str | None) -> Density | None:
    """Find the density of a family with its own link (None) or another; None where there is none here."""
    return _DENSITIES.get((family, link or _USUAL.get(family, "")))
