"""What a fitted model is, for everyone who reads one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, nan
from typing import Any


@dataclass(frozen=True)
class Coefficient:
    """A fixed effect on the link scale (log-odds); se, z and p are None where none can be claimed."""

    term: str
    estimate: float
    se: float | None
    z: float | None
    p: float | None


@dataclass(frozen=True)
class RandomEffect:
    """Standard deviation (link scale) of one random term between the levels of a grouping."""

    group: str
    term: str
    sd: float

    @property
    def variance(self) -> float:
        """The square of the standard deviation."""
        return self.sd**2


@dataclass(frozen=True)
class MixedModel:
    """A fitted model.

    Attributes
    ----------
    loglik
        Maximised log-likelihood; under separation its supremum, which is finite.
    df
        Parameters estimated: columns of the design that the data can tell apart, plus variances.
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

    def limit(self, coefficient: Coefficient) -> float:
        """Where an estimate really is: plus or minus infinity, or NaN, under separation; else itself."""
        sign = self.diverging.get(coefficient.term)
        return coefficient.estimate if sign is None else {1: inf, -1: -inf}.get(sign, nan)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "coefficients": [
                {"term": c.term, "estimate": c.estimate, "se": c.se, "z": c.z, "p": c.p} for c in self.coefficients
            ],
            "random": [{"group": r.group, "sd": r.sd} for r in self.random],
            "loglik": self.loglik,
            "df": self.df,
            "n": self.n,
            "converged": self.converged,
            "messages": list(self.messages),
        }
