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
    "residual_sd": "prior scale of the residual standard deviation",
}


@dataclass(frozen=True)
class Priors:
    """Weakly informative priors on the link scale (log-odds), of a Gaussian model in SDs of the response.

    Attributes
    ----------
    effect_sd
        Of each effect, normal around 0: of one unit of a column of 0 and 1, of one standard deviation of any other.
    intercept_sd
        Normal around 0, where every predictor is at its mean over the rows. 1.5 is nearly flat as a probability. Of a
        Gaussian model around the mean response.
    random_sd
        Scale of the half-normal prior of each standard deviation of random effects.
    correlation
        Parameter of the LKJ prior of their correlations (Lewandowski, Kurowicka & Joe, 2009): 1 is uniform, more
        prefers small ones.
    residual_sd
        Scale of the half-normal prior of a Gaussian model's residual standard deviation.

    Raises
    ------
    ForetellError
        A number that is not above 0.
    """

    effect_sd: float = 1.0
    intercept_sd: float = PlannedPriors().intercept_sd
    random_sd: float = PlannedPriors().random_sd
    correlation: float = PlannedPriors().correlation
    residual_sd: float = 1.0

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
        """Say what the priors are; with the link ``"identity"`` those of a Gaussian model."""
        is_linear = link == "identity"
        unit = {"logit": "log-odds", "identity": "SDs of the response"}.get(link, f"{link} scale")
        around = ", around the mean response" if is_linear else ""
        parts = [
            f"normal (0, {self.intercept_sd:g}) for the intercept at the predictors' means{around}",
            f"normal (0, {self.effect_sd:g}) for each effect",
        ]
        if random:
            parts.append(f"half-normal ({self.random_sd:g}) for the standard deviations of random effects")
        if correlated:
            parts.append(f"LKJ ({self.correlation:g}) for their correlations")
        if is_linear:
            parts.append(f"half-normal ({self.residual_sd:g}) for the residual standard deviation")
        return f"Priors ({unit}): {', '.join(parts)}."
