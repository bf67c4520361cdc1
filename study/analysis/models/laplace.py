"""The Laplace-approximate likelihood of a mixed model at any parameters, with its exact gradient.

`glmm` finds the maximum and says no more of the likelihood. Intervals of profiles, a check of the maximum that owes
nothing to the search, and the spread of conditional modes need it elsewhere too. With spherical random effects u
(Bates et al., 2015, doi:10.18637/jss.v067.i01), eta = X beta + Z T u, W minus the second derivatives of log p(y | eta)
(`study.analysis.models.densities`), H = I + T'Z'WZT and the mode u of the integrand, log L = log p(y | eta) -
u'u / 2 - log det(H) / 2. The gradient differentiates through the mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.errors import ForetellError
from study.analysis.models import coding, densities
from study.analysis.models import formula as formulas
from study.analysis.models.arrow import Arrow, Layout
from study.analysis.models.densities import CumulativeLogit, Density
from study.analysis.models.records import MixedModel

Floats = NDArray[np.float64]

LARGEST = 6000
"""Random effects of all groupings but the largest, whose matrix H is held dense."""
_STEPS = 200
_STEP = 1e-4
"""Step of the difference quotients of the gradient, which is exact."""
_STILL = 1e-20
"""Newton decrement (squared) at which the mode counts as found."""


@dataclass(frozen=True)
class Block:
    """One random term: q columns for each of its levels, with the Cholesky factor of their covariance as parameters.

    Attributes
    ----------
    codes
        (n,) level of each row.
    values
        (n, q) the term's columns.
    levels
        Their names.
    """

    codes: NDArray[np.int64]
    values: Floats
    levels: Sequence[str]

    @property
    def width(self) -> int:
        """Columns q."""
        return int(self.values.shape[1])

    @property
    def size(self) -> int:
        """Random effects: levels times columns."""
        return len(self.levels) * self.width


@dataclass(frozen=True)
class Point:
    """The likelihood at one choice of parameters.

    Attributes
    ----------
    loglik
        Log-likelihood, with the binomial coefficients, as lme4 and `glmm` count it.
    gradient
        (p + s + t,) its derivative by the coefficients, the density's own parameters (thresholds), and the entries of
        each block's factor, column by column.
    modes
        (q,) spherical modes u.
    eta
        (n,) linear predictor at the modes.
    values
        (n, k) each row's nonzero columns of Z T.
    curvature
        H, factored.
    """

    loglik: float
    gradient: Floats
    modes: Floats
    eta: Floats
    values: Floats
    curvature: Arrow

    @cached_property
    def spread(self) -> Floats:
        """(q, q) inverse of H: the covariance of the modes given the parameters."""
        return self.curvature.invert()


@dataclass
class Laplace:
    """The likelihood as a function of coefficients, the density's own parameters, and factors.

    Attributes
    ----------
    design
        (n, p) fixed-effects design.
    successes, responses
        (n,) counts of each row; of Poisson models the count times its prior weight, and that weight; of ordinal ones
        the level, from 1, and the prior weight.
    blocks
        The random terms.
    density
        Of the responses, at its own parameters of the last evaluation.
    offset
        (n,) or 0: added to each row's linear predictor.
    """

    design: Floats
    successes: Floats
    responses: Floats
    blocks: Sequence[Block]
    density: Density
    offset: Floats | float = 0.0
    _modes: Floats = field(init=False)

    def __post_init__(self) -> None:
        sizes = [block.size for block in self.blocks]
        largest = max(self.blocks, key=lambda block: len(block.levels)).codes
        own = [np.array_equal(block.codes, largest) for block in self.blocks]
        others = sum(size for size, is_own in zip(sizes, own, strict=True) if not is_own)
        if others > LARGEST or others * (sum(sizes) - others) > LARGEST**2:
            raise ForetellError(
                f"The model has {sum(sizes):,} random effects, of which {others:,} are not of the largest grouping (at "
                f"most {LARGEST:,}): take Wald intervals, leave out slopes, or group the rows."
            )
        self._offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._modes = np.zeros(sum(sizes))
        self._constant = self.density.constant(self.successes, self.responses)
        at = [
            offset + block.codes[:, None] * block.width + np.arange(block.width)
            for block, offset in zip(self.blocks, self._offsets, strict=False)
        ]
        widths = [block.width for block in self.blocks]
        columns = np.hstack([block.values for block in self.blocks])
        places = np.flatnonzero(np.repeat(own, widths)).tolist()
        self.layout = Layout(np.hstack(at), largest, places, sum(sizes), columns)

    @property
    def fixed_size(self) -> int:
        """Number of coefficients and own parameters of the density, which come first."""
        own = self.density.count_own(self.successes) if isinstance(self.density, CumulativeLogit) else 0
        return int(self.design.shape[1]) + own

    @property
    def parameters(self) -> int:
        """Number of coefficients, own parameters of the density, and entries of the factors."""
        return self.fixed_size + sum(triangle_size(block.width) for block in self.blocks)

    def at(self, parameters: Floats) -> Point:
        """Return the likelihood and its gradient; the search for the mode starts at the mode found last."""
        p = self.design.shape[1]
        values = self._apply_factors(self.factors(parameters[self.fixed_size :]))
        if isinstance(self.density, CumulativeLogit):
            self.density = self.density.at(parameters[p : self.fixed_size])
        modes, eta, factor = self._mode(self.design @ parameters[:p] + self.offset, values)
        self._modes = modes
        loglik = self._joint(eta, modes) - factor.half_log_determinant + self._constant
        return Point(loglik, self._gradient(eta, modes, factor, values), modes, eta, values, factor)

    def forget(self) -> None:
        """Start the next search for the mode at 0: the mode found last is far from a distant start."""
        self._modes = np.zeros_like(self._modes)

    def factors(self, theta: Floats) -> list[Floats]:
        """Return the lower triangles, from their entries column by column."""
        factors, start = [], 0
        for block in self.blocks:
            q = block.width
            triangle = np.zeros((q, q))
            triangle.T[np.triu_indices(q)] = theta[start : start + triangle_size(q)]
            factors.append(triangle)
            start += triangle_size(q)
        return factors

    def _apply_factors(self, factors: Sequence[Floats]) -> Floats:
        """Return (n, k) the nonzero columns of Z T: row i of a block is its values times the factor."""
        return np.hstack([block.values @ factor for block, factor in zip(self.blocks, factors, strict=True)])

    def _joint(self, eta: Floats, modes: Floats) -> float:
        logs = self.density.log(eta, self.successes, self.responses)
        return float(np.sum(logs)) - 0.5 * float(modes @ modes)

    def _mode(self, fixed: Floats, values: Floats) -> tuple[Floats, Floats, Arrow]:
        """Find the mode by Newton's method with halved steps; H is factored at the mode."""
        modes = self._modes
        eta = fixed + self.layout.spread_out(values, modes)
        value = self._joint(eta, modes)
        for _ in range(_STEPS):
            residual, weight, _ = self.density.differentiate(eta, self.successes, self.responses)
            factor = self.layout.factor(values, weight)
            score = self.layout.collect(values, residual) - modes
            step = factor.solve(score)
            if float(score @ step) < _STILL * max(1.0, abs(value)):
                return modes, eta, factor
            modes, eta, value, moved = self._step(modes, step, fixed, values, value)
            if not moved:
                break
        return modes, eta, self.layout.factor(values, self.weight(eta))

    def _step(
        self, modes: Floats, step: Floats, fixed: Floats, values: Floats, value: float
    ) -> tuple[Floats, Floats, float, bool]:
        for halved in range(20):
            trial = modes + step / 2**halved
            eta = fixed + self.layout.spread_out(values, trial)
            new = self._joint(eta, trial)
            if new >= value:
                return trial, eta, new, True
        return modes, fixed + self.layout.spread_out(values, modes), value, False

    def weight(self, eta: Floats) -> Floats:
        """Return (n,) W at a linear predictor."""
        return self.density.differentiate(eta, self.successes, self.responses)[1]

    def _gradient(self, eta: Floats, modes: Floats, factor: Arrow, values: Floats) -> Floats:
        """Return d log L: of the joint density, and of log det(H) through the weights, the factors and the mode."""
        at = self.layout.at
        residual, weight, change = self.density.differentiate(eta, self.successes, self.responses)
        inner = factor.rows_times_inverse(values)
        spread = np.sum(values * inner, axis=1)
        bend = spread * change
        pull = factor.solve(self.layout.collect(values, bend))
        # log det(H) depends on eta through the weights; eta on a parameter directly and through the mode.
        moved_by = self.layout.spread_out(values, pull)
        through = bend - weight * moved_by
        by_own = self._differentiate_own(eta, spread, moved_by)
        by_factors = []
        for z, column in self._entries():
            shift = z * modes[at[:, column]]
            moved = through @ shift + (z * residual) @ pull[at[:, column]]
            by_factors.append(residual @ shift - 0.5 * moved - (z * weight) @ inner[:, column])
        return np.concatenate([self.design.T @ (residual - 0.5 * through), by_own, by_factors])

    def _differentiate_own(self, eta: Floats, spread: Floats, moved_by: Floats) -> Floats:
        """Return d log L by the density's own parameters, which change the residuals and weights, not eta."""
        if not isinstance(self.density, CumulativeLogit):
            return np.zeros(0)
        log, first, second = self.density.differentiate_own(eta, self.successes, self.responses)
        return np.asarray(log.sum(axis=1) - 0.5 * (second @ spread + first @ moved_by))

    def _entries(self) -> Iterator[tuple[Floats, int]]:
        """List of each entry (i, j) of each factor the values it multiplies, and the place of what it feeds."""
        start = 0
        for block in self.blocks:
            for j in range(block.width):
                for i in range(j, block.width):
                    yield block.values[:, i], start + j
            start += block.width


def triangle_size(q: int) -> int:
    """Return entries of a lower triangle of q rows."""
    return q * (q + 1) // 2


def curvature(likelihood: Laplace, at: Floats, free: Sequence[int]) -> Floats:
    """Return the inverse of the observed information of some parameters, by differences of the gradient.

    A flat direction counts as very wide.
    """
    information = np.empty((len(free), len(free)))
    for row, k in enumerate(free):
        step = np.zeros(len(at))
        step[k] = _STEP
        information[row] = (likelihood.at(at - step).gradient - likelihood.at(at + step).gradient)[free] / (2 * _STEP)
    values, vectors = np.linalg.eigh((information + information.T) / 2)
    return np.asarray((vectors / np.maximum(values, 1e-3)) @ vectors.T)


def of(frame: pd.DataFrame, model: MixedModel, first: Sequence[str | None] = ()) -> tuple[Laplace, Floats]:
    """Return the likelihood of a fitted model, and its parameters (coefficients, the density's own, factors).

    Parameters
    ----------
    frame
        The rows the model was fitted to.
    first
        For each block the term to come first, whose standard deviation is then a parameter of its own.

    Raises
    ------
    ForetellError
        The likelihood of such a model is not known here, or it has too many random effects.
    """
    density = densities.find(model.family, model.link)
    if density is None or not model.is_laplace or not model.blocks:
        raise ForetellError(
            "Only a binomial, ordinal or Poisson model with random terms, fitted by the Laplace approximation, can be "
            "followed away from its maximum: take Wald intervals for this one."
        )
    data, text = formulas.prepare_formula(frame, model.formula)
    columns = formulas.slopes(data, text)
    levels = {group: formulas.levels(data, group) for group in {block.group for block in model.blocks}}
    blocks, theta = [], []
    for number, block in enumerate(model.blocks):
        lead = first[number] if number < len(first) else None
        order = sorted(range(len(block.terms)), key=lambda k: block.terms[k] != (lead or block.terms[0]))
        codes, names = levels[block.group]
        blocks.append(Block(codes, np.column_stack([columns[block.terms[k]] for k in order]), names))
        theta.append(root(block.covariance[np.ix_(order, order)]).T[np.triu_indices(len(order))])
    counts, responses = coding.read_response(data, text, model.weights, model.family)
    likelihood = Laplace(model.design(data, text), counts, responses, blocks, density, formulas.offset(data, text))
    own = CumulativeLogit(np.array([[c.estimate for c in model.thresholds]])).own if model.thresholds else np.zeros(0)
    return likelihood, np.concatenate([np.array([c.estimate for c in model.coefficients]), own, *theta])


def root(covariance: Floats) -> Floats:
    """Return a lower triangle whose product with its transpose is the covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    upper: Floats = np.linalg.qr((vectors * np.sqrt(np.clip(values, 0.0, None))).T)[1]
    triangle = upper.T
    return np.asarray(triangle * np.where(np.diag(triangle) < 0, -1.0, 1.0), dtype=np.float64)
