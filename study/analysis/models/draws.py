"""Responses drawn from a fitted model, with new participants, categories and images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit, ndtr

from core.errors import ForetellError
from study.analysis.models import laplace
from study.analysis.models.laplace import Laplace
from study.analysis.models.records import Floats, MixedModel


@dataclass(frozen=True)
class Draws:
    """Draws correct and incorrect responses to the trials of a frame from a model fitted to it.

    Attributes
    ----------
    likelihood, parameters
        Of the fitted model (`study.analysis.models.laplace.of`).
    """

    likelihood: Laplace
    parameters: Floats
    is_probit: bool

    @classmethod
    def of(cls, frame: pd.DataFrame, model: MixedModel) -> Draws:
        """Prepare the draws.

        Raises
        ------
        ForetellError
            The model is not binomial with one response a row, a cell is certain, or its likelihood is not known.
        """
        if model.diverging:
            raise ForetellError(
                "No responses can be drawn from a model in which a cell has only correct or only incorrect responses."
            )
        likelihood, parameters = laplace.of(frame, model)
        if model.family != "binomial" or likelihood.responses.max(initial=1) > 1:
            raise ForetellError("Responses can be drawn from a binomial model of single responses only.")
        return cls(likelihood, parameters, model.link == "probit")

    def sample(self, rng: np.random.Generator) -> Floats:
        """Return (n,) one new response a row, 1 or 0: each level of a grouping has new random effects."""
        p = self.likelihood.design.shape[1]
        eta = self.likelihood.design @ self.parameters[:p] + self.likelihood.offset
        for block, factor in zip(self.likelihood.blocks, self.likelihood.factors(self.parameters[p:]), strict=True):
            effects = rng.standard_normal((len(block.levels), block.width)) @ factor.T
            eta = eta + np.sum(block.values * effects[block.codes], axis=1)
        chance = ndtr(eta) if self.is_probit else expit(eta)
        return np.asarray(rng.random(len(eta)) < chance, dtype=np.float64)
