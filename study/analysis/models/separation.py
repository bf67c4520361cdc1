"""Separation: binomial models without a finite maximum-likelihood estimate, and what remains valid in them.

If some direction d in the space of the coefficients makes every response at least as likely (x.d >= 0 for every 1,
x.d <= 0 for every 0), and some strictly more likely, the likelihood increases without bound along d. Its supremum is
the likelihood of the *other* responses alone, because the separated ones become certain; the coefficients that the
others still determine keep their estimates and standard errors. Source: Geyer (2009), doi:10.1214/08-EJS349;
the linear programme is that of Konis (2007), "Linear programming algorithms for detecting separated data". With
Gaussian random effects the same holds: what raises the probability of every response raises the integral, and certain
responses drop out of it (and out of its Laplace approximation, because their weight p(1 - p) goes to 0).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.optimize import linprog

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

TOLERANCE = 1e-7
CERTAIN = 25.0
"""Log-odds from which a response counts as certain: its log-likelihood is then within 1.4e-11 of 0."""


@dataclass(frozen=True)
class Separation:
    """The separated responses, and the coefficients without a finite estimate.

    Attributes
    ----------
    rows
        (n,) true for each row whose responses the model can make certain.
    diverging
        (p,) true for each coefficient that the other rows do not determine.
    sign
        (p,) sign of the infinite estimate: 1, -1, or 0 if directions of both signs raise the likelihood.
    direction
        (p,) a direction along which every separated response becomes more likely.
    free
        (p, k) a basis of the directions that the other rows do not determine.
    """

    rows: Mask
    diverging: Mask
    sign: NDArray[np.int64]
    direction: Floats
    free: Floats

    def far_point(self, design: Floats, success: Mask, estimate: Floats) -> Floats:
        """Return the nearest point of the ray `estimate` + t `direction` where every separated response is certain."""
        signed = np.where(success, 1.0, -1.0)[self.rows, None] * design[self.rows]
        steps = (CERTAIN - signed @ estimate) / (signed @ self.direction)
        return estimate + max(0.0, float(steps.max())) * self.direction


def find(design: Floats, successes: Mask, failures: Mask) -> Separation | None:
    """Find the separated rows of a full-rank design; None if the estimate is finite.

    Parameters
    ----------
    design
        (n, p) fixed-effects design of full column rank.
    successes, failures
        (n,) whether the row holds at least one success, at least one failure (both, for grouped rows).
    """
    stacked = np.vstack([design[successes], -design[failures]])
    signed, inverse = np.unique(stacked, axis=0, return_inverse=True)
    certain, direction = _certain(signed)
    if not certain.any():
        return None
    rows = np.ones(len(design), dtype=bool)
    sources = np.concatenate([np.flatnonzero(successes), np.flatnonzero(failures)])
    rows[sources[~certain[inverse.ravel()]]] = False
    free = null_space(signed[~certain]) if (~certain).any() else np.eye(design.shape[1])
    diverging = np.linalg.norm(free, axis=1) > TOLERANCE
    sign = np.array([_sign(signed, j) if diverges else 0 for j, diverges in enumerate(diverging)], dtype=np.int64)
    return Separation(rows, diverging, sign, direction, free)


def _certain(signed: Floats) -> tuple[Mask, Floats]:
    """Find which signed rows can be made certain, and a direction that does it."""
    certain = np.zeros(len(signed), dtype=bool)
    direction = np.zeros(signed.shape[1])
    while not certain.all():
        step = _recession(signed[~certain])
        if step is None:
            break
        if certain.any():  # earlier directions must go to infinity faster, or this one could undo them
            before, now = signed[certain] @ direction, signed[certain] @ step
            direction = direction * (1.0 + float(np.max(np.abs(now) / before)))
        direction = direction + step
        certain[~certain] = signed[~certain] @ step > TOLERANCE
    return certain, direction


def _recession(signed: Floats) -> Floats | None:
    """Return a direction that makes no row less likely and some more, or None."""
    direction = _furthest(signed, signed.sum(axis=0))
    return direction if float((signed @ direction).max()) > TOLERANCE else None


def _sign(signed: Floats, j: int) -> int:
    """Return the sign coefficient j has in every direction of recession, or 0."""
    axis = np.eye(signed.shape[1])[j]
    up, down = _furthest(signed, axis)[j] > TOLERANCE, _furthest(signed, -axis)[j] < -TOLERANCE
    return int(up) - int(down)


def _furthest(signed: Floats, objective: Floats) -> Floats:
    """Solve the linear programme: max objective'd subject to Sd >= 0 and -1 <= d <= 1 (d = 0 always will do)."""
    solution = linprog(-objective, A_ub=-signed, b_ub=np.zeros(len(signed)), bounds=(-1.0, 1.0))
    return np.zeros(len(objective)) if solution.x is None else np.asarray(solution.x, dtype=np.float64)
