"""Records of fitted models, for every module that reads one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite, log, nan, sqrt
from typing import Any

import glmm
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.errors import ForetellError
from study.analysis.models import densities
from study.analysis.models import formula as formulas

Floats = NDArray[np.float64]
EffectColumns = Sequence[tuple[str, Sequence[str], Floats]]
"""Grouping, names and covariance of each set of correlated random effects."""


@dataclass(frozen=True)
class Coefficient:
    """A fixed effect on the link scale (log-odds); se, z and p are None where none can be claimed.

    `df` are Satterthwaite's degrees of freedom where the test is t (linear models), else None.
    """

    term: str
    estimate: float
    se: float | None
    z: float | None
    p: float | None
    df: float | None = None


@dataclass(frozen=True)
class VariancePart:
    """What one source of error adds to the coefficients' covariance.

    Attributes
    ----------
    covariance
        (p, p) of the coefficients.
    df
        Its degrees of freedom.
    levels
        Of the grouping; None of sampling error.
    spanned
        (p, g) directions of the coefficients in which levels differ from each other as a whole, and which cost the
        variance that is estimated from them g degrees of freedom.
    """

    covariance: Floats
    df: float
    levels: int | None = None
    spanned: Floats = field(default_factory=lambda: np.zeros((0, 0)))


@dataclass(frozen=True)
class RandomEffect:
    """Standard deviation (link scale) of one random term between the levels of a grouping, with its standard error."""

    group: str
    term: str
    sd: float
    se: float | None = None

    @property
    def variance(self) -> float:
        """The square of the standard deviation."""
        return self.sd**2


@dataclass(frozen=True)
class RandomBlock:
    """One random term in whole.

    Attributes
    ----------
    terms
        Names of its q columns, ``"(Intercept)"`` first.
    covariance
        (q, q) between them, link scale.
    modes
        Conditional modes, one row for each level.
    """

    group: str
    terms: tuple[str, ...]
    covariance: Floats
    modes: pd.DataFrame

    @property
    def correlations(self) -> Floats:
        """(q, q); NaN next to a standard deviation of 0."""
        sd = np.sqrt(np.diag(self.covariance))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.covariance / np.outer(sd, sd))


@dataclass(frozen=True)
class MixedModel:
    """A fitted model.

    Attributes
    ----------
    loglik
        Maximised log-likelihood; under separation its supremum, which is finite; the REML criterion where so fitted.
    df
        Parameters estimated: columns of the design that the data can tell apart, plus variances and covariances.
    n
        Rows.
    converged
        False where no finite maximum was found; `messages` then says why.
    messages
        Sentences to read before believing the fit.
    dropped
        Columns that repeat others in these data, left out (the last ones, as lme4 does).
    diverging
        Coefficients whose estimate is infinite, each with its sign (0: it depends on how two cells become certain).
        The number among the coefficients is then a point far out on the way there.
    covariance
        (p, p) of the coefficients, for combinations that `study.analysis.models.estimability` finds in the data: it is
        0 for coefficients that the responses outside separated cells leave open.
    aliased
        (p + d, d) directions of the coefficients and the d dropped columns along which no prediction changes.
    undetermined
        The same with the directions that separation leaves open.
    levels
        Of each factor among the fixed effects, those that the rows have; the first is the reference.
    blocks
        The random terms with their covariances and conditional modes.
    dispersion
        Residual variance of a linear model, else 1.
    reml
        Whether a linear model was fitted by restricted maximum likelihood.
    nodes
        Of the quadrature; 1 is the Laplace approximation.
    link
        None is the family's own.
    weights
        Column of prior weights.
    parts
        Of a binomial or Poisson model with random slopes: what the coefficients' covariance is the sum of.
    thresholds
        Of an ordinal model: log-odds of a level up to each but the last where all predictors are 0; ``"1|2"`` first.
    joint_covariance
        Of an ordinal model: that of its coefficients and thresholds together.
    """

    formula: str
    coefficients: tuple[Coefficient, ...]
    random: tuple[RandomEffect, ...]
    loglik: float
    df: int
    n: int
    converged: bool
    messages: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    diverging: Mapping[str, int] = field(default_factory=dict)
    family: str = "binomial"
    covariance: Floats = field(default_factory=lambda: np.zeros((0, 0)), compare=False, repr=False)
    aliased: Floats = field(default_factory=lambda: np.zeros((0, 0)), compare=False, repr=False)
    undetermined: Floats = field(default_factory=lambda: np.zeros((0, 0)), compare=False, repr=False)
    levels: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, compare=False, repr=False)
    blocks: tuple[RandomBlock, ...] = field(default=(), compare=False, repr=False)
    dispersion: float = 1.0
    reml: bool = False
    nodes: int = 1
    link: str | None = None
    weights: str | None = None
    parts: tuple[VariancePart, ...] = field(default=(), compare=False, repr=False)
    thresholds: tuple[Coefficient, ...] = ()
    joint_covariance: Floats = field(default_factory=lambda: np.zeros((0, 0)), compare=False, repr=False)

    @property
    def is_laplace(self) -> bool:
        """Whether it was fitted by the Laplace approximation that `study.analysis.models.laplace` computes."""
        return self.nodes == 1 and densities.find(self.family, self.link) is not None

    @property
    def effects(self) -> EffectColumns:
        """Grouping, names and covariance of each set of correlated random effects."""
        return [(block.group, block.terms, block.covariance) for block in self.blocks]

    @property
    def aic(self) -> float:
        """Akaike's criterion; of models fitted by REML it compares only those with the same fixed effects."""
        return 2.0 * self.df - 2.0 * self.loglik

    @property
    def bic(self) -> float:
        """The Bayesian criterion, with the number of rows as lme4 counts it."""
        return self.df * log(self.n) - 2.0 * self.loglik

    def limit(self, coefficient: Coefficient) -> float:
        """Return an estimate's limit: plus or minus infinity, or NaN, under separation; else itself."""
        sign = self.diverging.get(coefficient.term)
        return coefficient.estimate if sign is None else {1: inf, -1: -inf}.get(sign, nan)

    def design(self, frame: pd.DataFrame, formula: str | None = None) -> Floats:
        """Return (n, p) columns of the fixed effects for other rows of the same factors."""
        return self.design_with_dropped(frame, formula)[:, : len(self.coefficients)]

    def design_with_dropped(self, frame: pd.DataFrame, formula: str | None = None) -> Floats:
        """Return (n, p + d) columns of the coefficients, then those that were dropped."""
        fixed = formulas.extract_fixed_effects(formula or self.formula)
        columns, names = glmm.model_matrix(self.recode(frame), fixed)
        place = {name: k for k, name in enumerate(names)}
        wanted = [*(c.term for c in self.coefficients), *self.dropped]
        return np.asarray(columns, dtype=np.float64)[:, [place[name] for name in wanted]]

    def recode(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return other rows with the factors' levels of the rows that were fitted.

        Raises
        ------
        ForetellError
            A level that those rows do not have.
        """
        factors = {}
        for name in (name for name in self.levels if name in frame):
            levels = pd.Index(self.levels[name], dtype=object)
            codes = levels.get_indexer(frame[name].astype(object))
            if (codes < 0).any():
                other = frame[name].iloc[int(np.argmax(codes < 0))]
                raise ForetellError(f"The model was fitted without {name} = {other!r}: leave such rows out.")
            factors[name] = pd.Categorical.from_codes(codes, categories=levels)
        return frame.assign(**factors)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON.

        An estimate without a finite value keeps its number, a point far out, and ``limit`` says where it goes.
        """
        return {
            "coefficients": [self._coefficient(c) for c in self.coefficients],
            **({"thresholds": [self._coefficient(c) for c in self.thresholds]} if self.thresholds else {}),
            "random": [_random(r) for r in self.random],
            **({"correlations": pairs} if (pairs := self.correlations()) else {}),
            **({"residual_sd": sqrt(self.dispersion)} if self.family == "gaussian" else {}),
            "loglik": self.loglik,
            "df": self.df,
            "n": self.n,
            "converged": self.converged,
            "messages": list(self.messages),
        }

    def _coefficient(self, c: Coefficient) -> dict[str, Any]:
        statistic = "z" if c.df is None else "t"
        made: dict[str, Any] = {"term": c.term, "estimate": c.estimate, "se": c.se, statistic: c.z, "p": c.p}
        if c.df is not None:
            made["df"] = c.df
        if c.term in self.diverging:
            made["limit"] = {1: "infinity", -1: "-infinity"}.get(self.diverging[c.term], "undetermined")
        return made

    def correlations(self) -> list[dict[str, Any]]:
        """Return the grouping, the two terms and the correlation of each pair of correlated random effects."""
        return [
            {"group": block.group, "terms": [block.terms[j], block.terms[i]], "correlation": _number(r[i, j])}
            for block in self.blocks
            for r in [block.correlations]
            for i in range(len(block.terms))
            for j in range(i)
        ]


def _number(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def _random(effect: RandomEffect) -> dict[str, Any]:
    """Name a random effect: an intercept by its group alone, a slope also by its column."""
    slope = {} if effect.term == "(Intercept)" else {"term": effect.term}
    return {"group": effect.group, **slope, "sd": effect.sd}


@dataclass(frozen=True)
class InterimAnalysis:
    """One interim analysis.

    Attributes
    ----------
    number, of
        Which one it is, from 1, and how many the plan declares.
    participants
        Per condition, the first to finish; the plan's exclusions come after.
    bound, z
        ``|z|`` of the planned contrast beyond `bound` ends the collection; `z` is NaN where the model has no finite
        estimate, which ends nothing.
    """

    number: int
    of: int
    participants: int
    bound: float
    z: float

    @property
    def is_crossed(self) -> bool:
        """Whether the contrast is beyond its bound."""
        return bool(abs(self.z) > self.bound)

    @property
    def is_last(self) -> bool:
        """Whether all planned participants are included."""
        return self.number == self.of

    @property
    def is_final(self) -> bool:
        """Whether it ends the collection."""
        return self.is_crossed or self.is_last

    @property
    def sentence(self) -> str:
        """The decision and nothing else: neither the contrast's direction nor its distance from the bound."""
        where = f"Interim analysis {self.number} of {self.of}, at {self.participants} participants per condition"
        if self.is_crossed:
            return f"{where}: the bound is crossed. The collection is closed."
        if self.is_last:
            return f"{where}: the bound is not crossed, and this was the planned end. The collection is closed."
        return f"{where}: the bound is not crossed. The collection continues."
