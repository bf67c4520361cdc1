"""Fit linear mixed models with random terms that `glmm` does not know: ``(x || g)``, ``(0 + x | g)``.

The profiled likelihood of Bates, Maechler, Bolker & Walker (2015, doi:10.18637/jss.v067.i01, section 3) is maximised
over the relative covariance factors; coefficients and the residual variance follow in closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import glmm
import numpy as np
import pandas as pd
from scipy.linalg import block_diag, cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize

from core.errors import ForetellError
from study.analysis.models import coding, denominators, raw_fits
from study.analysis.models import formula as formulas
from study.analysis.models.laplace import root, triangle_size
from study.analysis.models.records import Floats, MixedModel

MOST_EFFECTS = 2000
"""Random effects in all: their matrix is held dense."""
STARTS = (1.0, 0.3)
"""Standard deviations, in units of the residual one, from which the searches start."""
SMALL = 1e-3
"""Relative standard deviation from which down the search asks whether 0 is as likely."""

DIFFERENCE = 1e-3
"""Relative step of the differences that degrees of freedom rest on."""
SMALLEST_SCALE = 0.05
"""A factor smaller than this share of the largest takes a step as if it were this share."""


@dataclass(frozen=True)
class _Block:
    """One set of correlated effects: names, (n, q) values and the level of each row."""

    group: str
    names: Sequence[str]
    values: Floats
    codes: Any
    levels: Sequence[str]

    @property
    def design(self) -> Floats:
        """(n, levels times q) the columns of each level side by side."""
        q = self.values.shape[1]
        wide = np.zeros((len(self.codes), len(self.levels) * q))
        rows = np.arange(len(self.codes))
        for k in range(q):
            wide[rows, self.codes * q + k] = self.values[:, k]
        return wide


@dataclass(frozen=True)
class _Solution:
    """Everything that follows from the factors."""

    deviance: float
    beta: Floats
    variance: float
    covariance: Floats
    modes: Floats


@dataclass(frozen=True)
class _Profile:
    """The profiled deviance (or REML criterion) as a function of the factors' entries, column by column.

    `log_weights` is the sum of the logarithms of the prior weights by which the rows were scaled.
    """

    design: Floats
    outcome: Floats
    blocks: Sequence[_Block]
    reml: bool
    log_weights: float = 0.0

    def weigh(self, weights: Floats) -> _Profile:
        """Return the profile with prior weights (n,): a row with weight w has the residual variance divided by w."""
        scale = np.sqrt(weights)
        blocks = [replace(block, values=block.values * scale[:, None]) for block in self.blocks]
        total = float(np.log(weights).sum())
        return _Profile(self.design * scale[:, None], self.outcome * scale, blocks, self.reml, total)

    @cached_property
    def _products(self) -> tuple[Floats, Floats, Floats]:
        wide = np.hstack([block.design for block in self.blocks])
        return wide.T @ wide, wide.T @ self.design, wide.T @ self.outcome

    def factors(self, theta: Floats) -> list[Floats]:
        """Return the lower triangles."""
        blocks_of, start = [], 0
        for block in self.blocks:
            q = block.values.shape[1]
            triangle = np.zeros((q, q))
            triangle.T[np.triu_indices(q)] = theta[start : start + triangle_size(q)]
            blocks_of.append(triangle)
            start += triangle_size(q)
        return blocks_of

    def deviance(self, theta: Floats) -> float:
        """Return -2 log L, or the REML criterion."""
        return self.solve(theta).deviance

    def solve(self, theta: Floats) -> _Solution:
        """Return coefficients, variance and effects at given factors (their equations 17 to 42)."""
        squares, crossed, wide_y = self._products
        factors = self.factors(theta)
        relative = block_diag(*(np.kron(np.eye(len(b.levels)), f) for b, f in zip(self.blocks, factors, strict=True)))
        inner = relative.T @ squares @ relative
        inner[np.diag_indices_from(inner)] += 1.0
        lower = cholesky(inner, lower=True)
        by_y = solve_triangular(lower, relative.T @ wide_y, lower=True)
        by_x = solve_triangular(lower, relative.T @ crossed, lower=True)
        upper = cholesky(self.design.T @ self.design - by_x.T @ by_x)
        beta = cho_solve((upper, False), self.design.T @ self.outcome - by_x.T @ by_y)
        rest = float(self.outcome @ self.outcome - by_y @ by_y - np.sum((upper @ beta) ** 2))
        n, p = self.design.shape
        free = n - p if self.reml else n
        deviance = free * (1 + np.log(2 * np.pi * rest / free)) - self.log_weights
        deviance += 2 * float(np.sum(np.log(np.diag(lower))))
        if self.reml:
            deviance += 2 * float(np.sum(np.log(np.abs(np.diag(upper)))))
        variance = rest / free
        modes = relative @ solve_triangular(lower, by_y - by_x @ beta, lower=True, trans="T")
        return _Solution(deviance, beta, variance, variance * cho_solve((upper, False), np.eye(p)), modes)


def fit(frame: pd.DataFrame, formula: str, plain: Any, reml: bool) -> Any:
    """Carry a fit with random intercepts to the random terms of a formula.

    Parameters
    ----------
    plain
        What `glmm` made of the same fixed effects and weights with an intercept for each grouping.

    Raises
    ------
    ForetellError
        Too many random effects.
    """
    blocks = [
        _Block(group, names, values, *formulas.levels(frame, group))
        for group, names, values in formulas.blocks(frame, formula)
    ]
    effects = sum(len(b.levels) * b.values.shape[1] for b in blocks)
    if effects > MOST_EFFECTS:
        raise ForetellError(
            f"The model {formula!r} has {effects:,} random effects; with '||' or '0 +' at most {MOST_EFFECTS:,} are "
            "possible. Write correlated terms with an intercept, as in (x | id)."
        )
    kept = ~np.asarray(plain.aliased, dtype=bool)
    design = np.asarray(glmm.model_matrix(frame, formulas.extract_fixed_effects(formula))[0], dtype=np.float64)[:, kept]
    outcome = np.asarray(plain.y, dtype=np.float64) - formulas.offset(frame, formula)
    profile = _Profile(design, outcome, blocks, reml).weigh(raw_fits.list_weights(plain))
    theta, arrived = _search(profile)
    return _describe_fit(plain, kept, profile, theta, arrived)


def _search(profile: _Profile) -> tuple[Floats, bool]:
    """Return the factors of the lowest deviance, those that are as good at 0 set to 0, and whether the search ended."""
    bounds: list[tuple[float | None, None]] = []
    scales = []
    for block in profile.blocks:
        size = np.maximum(np.sqrt(np.mean(block.values**2, axis=0)), 1e-12)
        is_diagonal = np.equal(*np.triu_indices(len(size)))
        scales.append(np.where(is_diagonal, 1 / size[np.triu_indices(len(size))[0]], 0.0))
        bounds += [(0.0 if flag else None, None) for flag in is_diagonal]
    unit = np.concatenate(scales)
    options = {"ftol": 1e-14, "gtol": 1e-7, "maxiter": 1000}
    ends = [minimize(profile.deviance, s * unit, method="L-BFGS-B", bounds=bounds, options=options) for s in STARTS]
    best = min(ends, key=lambda end: float(end.fun))
    fine = {"xatol": 1e-7, "fatol": 1e-10, "maxiter": 2000}
    last = minimize(profile.deviance, best.x, method="Nelder-Mead", bounds=bounds, options=fine)
    theta, value = np.asarray(last.x, dtype=np.float64), float(last.fun)
    for k in np.flatnonzero((unit > 0) & (np.abs(theta) < SMALL * unit)):
        trial = theta.copy()
        trial[k] = 0.0
        if profile.deviance(trial) < value + 1e-6:
            theta = trial
    return theta, bool(last.success)


def find_df(frame: pd.DataFrame, model: MixedModel, combinations: Floats) -> Floats:
    """Find Satterthwaite's degrees of freedom (k,) of combinations (k, p) of a linear model's coefficients.

    Those of lmerTest, for models with random terms. Others, and models with more than `MOST_EFFECTS` random effects,
    have the fewest degrees of freedom of any coefficient.

    Parameters
    ----------
    frame
        The rows that the model was fitted to.
    """
    effects = sum(len(block.modes) * len(block.terms) for block in model.blocks)
    if not 0 < effects <= MOST_EFFECTS:
        return denominators.find_df(model, combinations)
    data, text = formulas.prepare_formula(frame, model.formula)
    values = {(group, tuple(names)): columns for group, names, columns in formulas.blocks(data, text)}
    blocks, theta = [], []
    for block in model.blocks:
        columns = values[block.group, block.terms]
        blocks.append(_Block(block.group, block.terms, columns, *formulas.levels(data, block.group)))
        factor = root(block.covariance / model.dispersion)
        theta.append(factor.T[np.triu_indices(len(factor))])
    response = np.asarray(coding.read_response(data, text, None, model.family)[0], dtype=np.float64)
    profile = _Profile(model.design(data, text), response - formulas.offset(data, text), blocks, model.reml)
    if model.weights is not None:
        profile = profile.weigh(data[model.weights].to_numpy(dtype=np.float64))
    point = np.concatenate(theta)
    return _compute_df(profile, point, profile.solve(point), combinations)


def _compute_df(profile: _Profile, theta: Floats, solution: _Solution, combinations: Floats) -> Floats:
    """Compute Satterthwaite's degrees of freedom (k,) of combinations (k, p) of coefficients, as lmerTest does.

    2 v^2 / (g'A g), with v a combination's variance, g its derivative by the factors and the residual standard
    deviation, and A their covariance (Kuznetsova, Brockhoff & Christensen, 2017, doi:10.18637/jss.v082.i13), by central
    differences.
    """
    free = len(profile.outcome) - (profile.design.shape[1] if profile.reml else 0)

    def measure(covariance: Floats) -> Floats:
        return np.asarray(np.einsum("ki,ij,kj->k", combinations, covariance, combinations))

    def evaluate(point: Floats) -> tuple[float, Floats]:
        at, variance = profile.solve(point[:-1]), point[-1] ** 2
        deviance = at.deviance + free * (np.log(variance / at.variance) + at.variance / variance - 1)
        return float(deviance), measure(at.covariance) * variance / at.variance

    centre = np.append(theta, np.sqrt(solution.variance))
    steps = np.diag(DIFFERENCE * np.maximum(np.abs(centre), SMALLEST_SCALE * np.abs(centre).max()))
    ups, downs = [evaluate(centre + h) for h in steps], [evaluate(centre - h) for h in steps]
    size, middle = np.diag(steps), evaluate(centre)[0]
    gradient = np.array([(up[1] - down[1]) / (2 * h) for up, down, h in zip(ups, downs, size, strict=True)])
    curvature = np.diag([(up[0] - 2 * middle + down[0]) for up, down in zip(ups, downs, strict=True)])
    for i in range(len(size)):
        for j in range(i):
            signs = [a * b * evaluate(centre + a * steps[i] + b * steps[j])[0] for a in (1, -1) for b in (1, -1)]
            curvature[i, j] = curvature[j, i] = sum(signs) / 4
    values, vectors = np.linalg.eigh(curvature / np.outer(size, size))
    kept = values > 1e-8 * values[-1]  # a direction at the boundary has no curvature
    spread = vectors[:, kept].T @ gradient
    imprecision = 2 * np.sum(spread**2 / values[kept, None], axis=0)
    infinite = np.full(len(imprecision), np.nan)
    return np.asarray(
        np.divide(2 * measure(solution.covariance) ** 2, imprecision, where=imprecision > 0, out=infinite)
    )


def _describe_fit(plain: Any, kept: Any, profile: _Profile, theta: Floats, arrived: bool) -> Any:
    solution = profile.solve(theta)
    covariances = [solution.variance * factor @ factor.T for factor in profile.factors(theta)]
    beta, vcov = np.full(len(kept), np.nan), np.full((len(kept), len(kept)), np.nan)
    beta[kept], vcov[np.ix_(kept, kept)] = solution.beta, solution.covariance
    df = np.full(len(kept), np.nan)
    df[kept] = _compute_df(profile, theta, solution, np.eye(len(solution.beta)))
    singular = any(np.linalg.eigvalsh(c).min() < formulas.NOTHING**2 * solution.variance for c in covariances)
    return replace(
        plain,
        beta=beta,
        vcov=vcov,
        se=np.sqrt(np.diag(vcov)),
        coef_df=df,
        loglik=-solution.deviance / 2,
        df=int(kept.sum()) + sum(triangle_size(len(c)) for c in covariances) + 1,
        dispersion=solution.variance,
        re_groups=[(block.group, list(block.names)) for block in profile.blocks],
        varcorr=[c.T[np.triu_indices(len(c))] for c in covariances],
        stddev_se=np.zeros(0),
        ranef_blocks=_modes(profile.blocks, solution.modes),
        diagnostics={**plain.diagnostics, "converged": arrived, "singular": singular},
        warnings=[w for w in plain.warnings if w["kind"] != "singular"],
    )


def _modes(blocks: Sequence[_Block], modes: Floats) -> list[dict[str, Any]]:
    parts, start = [], 0
    for block in blocks:
        q = block.values.shape[1]
        size = len(block.levels) * q
        values = modes[start : start + size].reshape(-1, q)
        parts.append({"group": block.group, "terms": list(block.names), "levels": list(block.levels), "values": values})
        start += size
    return parts
