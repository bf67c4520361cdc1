"""Fit random terms that `glmm` does not know: ``(x || g)``, ``(0 + x | g)``, slopes without a fixed effect.

The Laplace-approximate likelihood of a binomial (logit, probit) or Poisson model (`study.analysis.models.laplace`) is
maximised over coefficients and factors together, with its exact gradient (BFGS). The search starts from the fit with
random intercepts only, in units of that fit's standard errors. Standard errors come from the observed information, as
those of `glmm` do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import glmm
import numpy as np
import pandas as pd
from scipy.optimize import minimize

from study.analysis.models import formula as formulas
from study.analysis.models import starts
from study.analysis.models.densities import Density
from study.analysis.models.laplace import Block, Laplace, Point, curvature, root, triangle_size
from study.analysis.models.records import EffectColumns, Floats

FIRST_SLOPE = 0.3
"""Standard deviation (log-odds) at which the search for a slope's starts: at 0 the gradient would be 0."""
STEEPEST = 1e-3
"""Slope of the log-likelihood, in units of the scaled parameters, at which the search has arrived: the maximum is then
within about 1e-6."""
SLOPING = 0.05
"""The same slope from which on the search counts as unfinished: about 1e-3 of log-likelihood could be gained."""
PATIENCE, PLATEAU = 12, 1e-6
"""The search also ends where so many evaluations together gain no more than this: at a singular fit it is flat."""
SMALL = 0.1
"""Standard deviation (log-odds) from which down the search asks whether 0 is as likely."""
AS_LIKELY = 1e-4
"""Log-likelihood that a standard deviation of 0 may cost to be taken."""


SDS = (1.0, 8.0)
"""Standard deviations at which further searches start where responses are few: fewer than with `glmm`, which takes a
hundredth of the time for each."""


class _Plateau(Exception):
    """The likelihood rises no further."""


@dataclass(frozen=True)
class LikelihoodMaximum:
    """The end of a search.

    Attributes
    ----------
    parameters
        Coefficients, then the entries of each block's factor, column by column.
    """

    parameters: Floats
    point: Point
    arrived: bool
    evaluations: int


def climb(likelihood: Laplace, start: Floats, scale: Floats, *, lengthen: bool = True) -> LikelihoodMaximum:
    """Climb to the maximum from `start`; `scale` (square) makes a step of 1 a plausible one in each direction.

    With `lengthen`, the steps of the factors are as long as the factors: the scale was made where those are small.
    """
    best: list[Point] = []
    at_best: list[Floats] = []
    trace: list[float] = []
    stride = _lengthen(scale, start, likelihood.fixed_size) if lengthen else scale

    def loss(z: Floats) -> tuple[float, Floats]:
        at = start + stride @ z
        point = likelihood.at(at)
        if not best or point.loglik > best[0].loglik:
            best[:], at_best[:] = [point], [at]
        trace.append(best[0].loglik)
        if len(trace) > PATIENCE and trace[-1] - trace[-1 - PATIENCE] < PLATEAU:
            raise _Plateau
        return -point.loglik, -stride.T @ point.gradient

    options = {"gtol": STEEPEST, "maxiter": 500}
    with suppress(_Plateau):
        minimize(loss, np.zeros(len(start)), jac=True, method="BFGS", options=options)
    steep = float(np.abs(scale.T @ best[0].gradient).max())
    return LikelihoodMaximum(at_best[0], best[0], steep < SLOPING, len(trace))


def _lengthen(scale: Floats, start: Floats, fixed: int) -> Floats:
    """Return the scale with steps of the factors as long as the factors: a standard deviation is known to a share."""
    longer = scale.copy()
    longer[fixed:, fixed:] *= max(1.0, float(np.abs(start[fixed:]).max(initial=0.0)))
    return longer


def fit(
    frame: pd.DataFrame,
    formula: str,
    plain: Any,
    density: Density,
    *,
    errors: bool = True,
    near: EffectColumns = (),
) -> Any:
    """Carry a fit with random intercepts to the random terms of a formula.

    Parameters
    ----------
    plain
        What `glmm` made of the same fixed effects with an intercept for each grouping.
    density
        Of the responses.
    errors
        Whether to compute standard errors, which take as long as the search.
    near
        Random effects of a similar fit (grouping, names, covariance), at which the search starts.

    Returns
    -------
    glmm.Fit
        `plain` with every number that the random terms change.
    """
    kept = ~np.asarray(plain.aliased, dtype=bool)
    design = np.asarray(glmm.model_matrix(frame, formulas.extract_fixed_effects(formula))[0], dtype=np.float64)[:, kept]
    responses = np.ones(plain.nobs) if plain.weights is None else np.asarray(plain.weights, dtype=np.float64)
    terms = formulas.blocks(frame, formula)
    levels = {group: formulas.levels(frame, group) for group in {group for group, _, _ in terms}}
    blocks = [Block(levels[group][0], values, levels[group][1]) for group, _, values in terms]
    counts, offset = np.asarray(plain.y) * responses, formulas.offset(frame, formula)
    likelihood = Laplace(design, counts, responses, blocks, density, offset)
    start, scale = _start(plain, kept, likelihood, [group for group, _, _ in terms])
    _move_near(start, likelihood, terms, near)
    maximum, maxima = _best(likelihood, climb(likelihood, start, scale), scale, terms)
    maximum = settle_on_boundary(likelihood, maximum)
    spread = np.full((len(start), len(start)), math.nan)
    if errors:
        spread = compute_spread(likelihood, maximum)
        maximum = take_newton_step(likelihood, maximum, spread)
    made = _build_result(plain, kept, maximum, likelihood, [(group, names) for group, names, _ in terms], spread)
    return starts.with_maxima(made, maxima)


def _best(
    likelihood: Laplace, first: LikelihoodMaximum, scale: Floats, terms: starts.Blocks
) -> tuple[LikelihoodMaximum, tuple[starts.End, ...]]:
    """Return the best of several searches where responses are few, and the maxima if there are two."""
    responses = float(np.sum(likelihood.responses))
    if not starts.is_few(responses):
        return first, ()
    lowest = -math.inf if likelihood.density.is_count else starts.compute_lowest(responses)

    def search(beta: Floats, theta: Floats) -> starts.End:
        likelihood.forget()
        return _end(likelihood, climb(likelihood, np.concatenate([beta, theta]), scale))

    return starts.search(_end(likelihood, first), lowest, terms, search, SDS)


def _end(likelihood: Laplace, maximum: LikelihoodMaximum) -> starts.End:
    p = likelihood.fixed_size
    beta, theta = maximum.parameters[:p], maximum.parameters[p:]
    sds = tuple(float(np.linalg.norm(factor[0])) for factor in likelihood.factors(theta))
    return starts.End(maximum.point.loglik, sds, beta, theta, maximum.arrived, maximum)


def settle_on_boundary(likelihood: Laplace, maximum: LikelihoodMaximum) -> LikelihoodMaximum:
    """Set each small standard deviation to 0 where that is as likely: near 0 the likelihood is flat."""
    at = likelihood.fixed_size
    for block in likelihood.blocks:
        if block.width == 1 and 0 < abs(maximum.parameters[at]) < SMALL:
            parameters = maximum.parameters.copy()
            parameters[at] = 0.0
            point = likelihood.at(parameters)
            if point.loglik > maximum.point.loglik - AS_LIKELY:
                maximum = replace(maximum, parameters=parameters, point=point)
        at += triangle_size(block.width)
    return maximum


def _start(plain: Any, kept: np.ndarray, likelihood: Laplace, groups: Sequence[str]) -> tuple[Floats, Floats]:
    """Return coefficients and intercepts as of the plain fit, slopes at `FIRST_SLOPE`; and the scale of each."""
    sds = {group: math.sqrt(plain.varcorr[k][0]) for k, (group, _) in enumerate(plain.re_groups)}
    factors, widths = [], []
    for group, block in zip(groups, likelihood.blocks, strict=True):
        diagonal = np.full(block.width, FIRST_SLOPE)
        if np.ptp(block.values[:, 0]) == 0:
            diagonal[0] = max(sds.get(group, 0.0), FIRST_SLOPE)
        factors.append(np.diag(diagonal).T[np.triu_indices(block.width)])
        widths.append(np.full(triangle_size(block.width), 1 / math.sqrt(len(block.levels))))
    beta = np.nan_to_num(np.asarray(plain.beta, dtype=np.float64)[kept])
    covariance = np.asarray(plain.vcov, dtype=np.float64)[np.ix_(kept, kept)]
    sound = np.isfinite(covariance).all()
    p = len(beta)
    scale = np.zeros((likelihood.parameters, likelihood.parameters))
    scale[:p, :p] = root(covariance) if sound else np.eye(p) / math.sqrt(len(likelihood.responses))
    scale[p:, p:] = np.diag(np.concatenate(widths))
    return np.concatenate([beta, *factors]), scale


def _move_near(start: Floats, likelihood: Laplace, terms: starts.Blocks, near: EffectColumns) -> None:
    """Move the factors of the start to those of a similar fit, but away from 0, where the gradient would be 0."""
    known = {(group, tuple(names)): covariance for group, names, covariance in near}
    at = likelihood.fixed_size
    for (group, names, _), block in zip(terms, likelihood.blocks, strict=True):
        size = triangle_size(block.width)
        if (covariance := known.get((group, tuple(names)))) is not None:
            factor = root(covariance)
            places = np.diag_indices(block.width)
            factor[places] = np.maximum(factor[places], SMALL)
            start[at : at + size] = factor.T[np.triu_indices(block.width)]
        at += size


def take_newton_step(likelihood: Laplace, maximum: LikelihoodMaximum, spread: Floats) -> LikelihoodMaximum:
    """Take one Newton step from where the search ended, if it leads up."""
    parameters = maximum.parameters + np.nan_to_num(spread) @ maximum.point.gradient
    point = likelihood.at(parameters)
    return replace(maximum, parameters=parameters, point=point) if point.loglik > maximum.point.loglik else maximum


def compute_spread(likelihood: Laplace, maximum: LikelihoodMaximum) -> Floats:
    """Return the covariance of the parameters; NaN of factors at 0, where the likelihood has no parabola."""
    fixed = likelihood.fixed_size
    free = [k for k in range(likelihood.parameters) if k < fixed or abs(maximum.parameters[k]) > formulas.NOTHING]
    whole = np.full((likelihood.parameters, likelihood.parameters), math.nan)
    whole[np.ix_(free, free)] = curvature(likelihood, maximum.parameters, free)
    return whole


def _build_result(
    plain: Any,
    kept: np.ndarray,
    maximum: LikelihoodMaximum,
    likelihood: Laplace,
    terms: Sequence[tuple[str, Sequence[str]]],
    spread: Floats,
) -> Any:
    p = int(kept.sum())
    factors = likelihood.factors(maximum.parameters[p:])
    covariances = [factor @ factor.T for factor in factors]
    beta, vcov = np.full(len(kept), math.nan), np.full((len(kept), len(kept)), math.nan)
    beta[kept], vcov[np.ix_(kept, kept)] = maximum.parameters[:p], spread[:p, :p]
    singular = any(np.linalg.eigvalsh(c).min() < formulas.NOTHING**2 for c in covariances)
    return replace(
        plain,
        beta=beta,
        vcov=vcov,
        se=np.sqrt(np.diag(vcov)),
        loglik=maximum.point.loglik,
        df=p + sum(triangle_size(len(c)) for c in covariances),
        re_groups=[(group, list(names)) for group, names in terms],
        varcorr=[c.T[np.triu_indices(len(c))] for c in covariances],
        stddev_se=np.concatenate(compute_sd_errors(factors, spread[p:, p:])),
        ranef_blocks=list_modes(likelihood, maximum, factors, terms),
        diagnostics={**plain.diagnostics, "converged": maximum.arrived, "singular": singular},
        warnings=[w for w in plain.warnings if w["kind"] != "singular"],
        n_eval=maximum.evaluations,
    )


def compute_sd_errors(factors: Sequence[Floats], spread: Floats) -> list[Floats]:
    """Return standard error of each standard deviation at its place in the triangle: the length of the factor's row."""
    errors, start = [], 0
    for factor in factors:
        size = triangle_size(len(factor))
        part = spread[start : start + size, start : start + size]
        column, row = np.triu_indices(len(factor))
        own = np.full(size, math.nan)
        for k in range(len(factor)):
            in_row = row == k
            length = float(np.linalg.norm(factor[k]))
            if length > formulas.NOTHING:
                gradient = factor[k, column[in_row]] / length
                own[(row == k) & (column == k)] = math.sqrt(gradient @ part[np.ix_(in_row, in_row)] @ gradient)
        errors.append(own)
        start += size
    return errors


def list_modes(
    likelihood: Laplace,
    maximum: LikelihoodMaximum,
    factors: Sequence[Floats],
    terms: Sequence[tuple[str, Sequence[str]]],
) -> list[dict[str, Any]]:
    blocks, start = [], 0
    for (group, names), block, factor in zip(terms, likelihood.blocks, factors, strict=True):
        spherical = maximum.point.modes[start : start + block.size].reshape(-1, block.width)
        blocks.append(
            {"group": group, "terms": list(names), "levels": list(block.levels), "values": spherical @ factor.T}
        )
        start += block.size
    return blocks
