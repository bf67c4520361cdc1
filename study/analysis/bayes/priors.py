"""Priors of a Bayesian mixed model, in words and as numbers."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from core.errors import ForetellError
from study.plan.preregistration import AnalysisPlan, PlannedPriors

NAMES = {
    "effect_sd": "prior SD of effects",
    "intercept_sd": "prior SD of the intercept",
    "random_sd": "prior scale of random effects' standard deviations",
    "correlation": "LKJ parameter of correlations",
}


@dataclass(frozen=True)
class Priors:
    """Weakly informative priors on the link scale (log-odds).

    Attributes
    ----------
    effect_sd
        Of each effect, normal around 0: of one unit of a column of 0 and 1, of one standard deviation of any other.
    intercept_sd
        Normal around 0, where every predictor is at its mean over the rows. 1.5 is nearly flat as a probability.
    random_sd
        Scale of the half-normal prior of each standard deviation of random effects.
    correlation
        Parameter of the LKJ prior of their correlations (Lewandowski, Kurowicka & Joe, 2009): 1 is uniform, more
        prefers small ones.

    Raises
    ------
    ForetellError
        A number that is not above 0.
    """

    effect_sd: float = 1.0
    intercept_sd: float = PlannedPriors().intercept_sd
    random_sd: float = PlannedPriors().random_sd
    correlation: float = PlannedPriors().correlation

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 < value < np.inf:
                raise ForetellError(
                    f"The {NAMES[field.name]} is {value:g}, which is no proper prior: give a number above 0, such as "
                    f"{field.default:g}."
                )

    @classmethod
    def of_plan(cls, plan: AnalysisPlan) -> Priors:
        """Return those of a plan, and the defaults for what it does not state."""
        own = {} if plan.prior_sd is None else {"effect_sd": plan.prior_sd}
        return cls(**own, **plan.priors.model_dump())

    def describe(self, *, link: str = "logit", correlated: bool = False, random: bool = True) -> str:
        """Say what the priors are."""
        unit = "log-odds" if link == "logit" else f"{link} scale"
        parts = [
            f"normal (0, {self.intercept_sd:g}) for the intercept at the predictors' means",
            f"normal (0, {self.effect_sd:g}) for each effect",
        ]
        if random:
            parts.append(f"half-normal ({self.random_sd:g}) for the standard deviations of random effects")
        if correlated:
            parts.append(f"LKJ ({self.correlation:g}) for their correlations")
        return f"Priors ({unit}): {', '.join(parts)}."
