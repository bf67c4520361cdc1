"""Bounds of a group-sequential test: how large |z| must be at each analysis so that all together keep alpha.

Lan & DeMets (1983, doi:10.1093/biomet/70.3.659): alpha is spent as information comes in. The chance of leaving the
bounds at an analysis is integrated over where the test was before (Armitage, McPherson & Rowe, 1969,
doi:10.2307/2343787), by Gauss-Legendre quadrature.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from study.plan.preregistration import Spending

NODES = 400
FARTHEST = 37.0
"""Beyond it the normal distribution's tail is no number any more."""


def obrien_fleming(fraction: float, alpha: float) -> float:
    """Spend next to nothing early: close to O'Brien & Fleming's bounds. `alpha` is of one side."""
    return 2 * float(norm.sf(norm.isf(alpha / 2) / math.sqrt(fraction)))


def pocock(fraction: float, alpha: float) -> float:
    """Spend for nearly the same bound at each analysis: close to Pocock's."""
    return alpha * math.log(1 + (math.e - 1) * fraction)


SPENDING: dict[Spending, Callable[[float, float], float]] = {"obrien_fleming": obrien_fleming, "pocock": pocock}


def bounds(fractions: Sequence[float], alpha: float, spending: Spending) -> list[float]:
    """Return the bound on |z| at each analysis of a two-sided test.

    Parameters
    ----------
    fractions
        Of the information at each look: rising, above 0, the last is 1.
    alpha
        Of both sides and all analyses together.
    """
    limits: list[float] = []
    where, density, before, spent = np.zeros(1), np.ones(1), 0.0, 0.0
    for fraction in fractions:
        due = SPENDING[spending](fraction, alpha / 2)
        step, width = math.sqrt(fraction - before), math.sqrt(fraction)

        def excess(z: float, mass: float = due - spent) -> float:
            return float(density @ norm.sf((z * width - where) / step)) - mass  # noqa: B023

        limits.append(float(brentq(excess, 0.0, FARTHEST)) if excess(FARTHEST) < 0 else math.inf)
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        edge = min(limits[-1], 9.0) * width
        density = norm.pdf((edge * nodes[:, None] - where) / step) / step @ density * weights * edge
        where, before, spent = edge * nodes, fraction, due
    return limits
