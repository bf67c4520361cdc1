"""The posterior of a mixed model: estimates, their intervals, and whether they are to be believed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from core.types import Progress, silent
from study.analysis.bayes import design as designs
from study.analysis.bayes import diagnostics, sampler
from study.analysis.bayes.design import Design
from study.analysis.bayes.diagnostics import Diagnostics
from study.analysis.bayes.priors import Priors
from study.analysis.bayes.sampler import ParameterDraws, SamplerSettings
from study.analysis.models.marginal import get_link
from study.analysis.models.records import Coefficient, Floats, MixedModel, RandomEffect

LOW, HIGH = 0.025, 0.975
"""Shares of the draws below the limits of an equal-tailed 95% interval."""


@dataclass(frozen=True)
class Posterior:
    """A Bayesian fit.

    Attributes
    ----------
    design
        The model and its rows.
    draws
        Of its parameters.
    """

    design: Design
    draws: ParameterDraws
    priors: Priors
    settings: SamplerSettings

    @cached_property
    def table(self) -> pd.DataFrame:
        """The parameters: `parameter`, mean, median, low, high (equal-tailed 95%), rhat, ess_bulk, ess_tail."""
        rows = []
        for name, values in self.list_parameters():
            low, high = np.quantile(values, (LOW, HIGH))
            bulk, tail = diagnostics.compute_effective(values)
            rhat = diagnostics.compute_rhat(values)
            rows.append((name, float(values.mean()), float(np.median(values)), low, high, rhat, bulk, tail))
        names = ["parameter", "mean", "median", "low", "high", "rhat", "ess_bulk", "ess_tail"]
        return pd.DataFrame(rows, columns=names)

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """The worst of the parameters and of the log density."""
        table, energy = self.table, self.draws.energy
        rhat = np.append(table["rhat"], diagnostics.compute_rhat(energy))
        few = np.append(
            table[["ess_bulk", "ess_tail"]].to_numpy().min(axis=1), diagnostics.compute_effective(energy)[0]
        )
        return Diagnostics(float(rhat.max()), float(few.min()), self.draws.divergences, energy.size)

    @cached_property
    def model(self) -> MixedModel:
        """The posterior means as a model, with posterior standard deviations in place of standard errors."""
        flat, covariances = self.draws.flatten()
        shape = self.design.model
        coefficients = tuple(
            Coefficient(c.term, float(mean), float(sd), None, None)
            for c, mean, sd in zip(shape.coefficients, flat.mean(axis=0), flat.std(axis=0, ddof=1), strict=True)
        )
        pairs = list(zip(shape.blocks, covariances, strict=True))
        random = tuple(
            RandomEffect(block.group, term, float(np.sqrt(values[:, k, k]).mean()))
            for block, values in pairs
            for k, term in enumerate(block.terms)
        )
        blocks = tuple(replace(block, covariance=values.mean(axis=0)) for block, values in pairs)
        covariance = np.atleast_2d(np.cov(flat.T))
        residual = self.draws.residual
        return replace(
            shape,
            coefficients=coefficients,
            random=random,
            blocks=blocks,
            covariance=covariance,
            dispersion=shape.dispersion if residual is None else float(np.mean(residual**2)),
        )

    @property
    def describe_priors(self) -> str:
        """The priors in words."""
        blocks = self.design.blocks
        return self.priors.describe(
            link=get_link(self.design.model),
            correlated=any(block.width > 1 for block in blocks),
            random=bool(blocks),
        )

    def list_parameters(self) -> Iterator[tuple[str, Floats]]:
        """List (c, d) draws of each parameter by its name."""
        yield from zip(self.design.terms, np.moveaxis(self.draws.coefficients, -1, 0), strict=True)
        for block, values in zip(self.design.model.blocks, self.draws.covariances, strict=True):
            sds = np.sqrt(np.diagonal(values, axis1=-2, axis2=-1))
            for k, term in enumerate(block.terms):
                yield f"SD {block.group} {term}", sds[..., k]
            for i in range(len(block.terms)):
                for j in range(i):
                    name = f"correlation {block.group} {block.terms[j]} and {block.terms[i]}"
                    yield name, values[..., i, j] / (sds[..., i] * sds[..., j])
        if self.draws.residual is not None:
            yield "SD residual", self.draws.residual


def fit(
    frame: pd.DataFrame,
    formula: str,
    *,
    family: str = "binomial",
    link: str | None = None,
    weights: str | None = None,
    priors: Priors | None = None,
    settings: SamplerSettings | None = None,
    progress: Progress = silent,
) -> Posterior:
    """Draw from the posterior of a mixed model; after divergences once more, with smaller steps.

    Parameters
    ----------
    frame, formula, family, link, weights
        As of `study.analysis.models.mixed.fit`, binomial with logit or probit link, or Gaussian without weights: a term
        means the same.
    priors, settings
        The default ones if None.
    progress
        Told of every 50 iterations; raise from it to stop the fit.

    Raises
    ------
    ForetellError
        NumPyro is not installed, or the formula does not fit the rows.
    """
    sampler.import_numpyro()
    priors, settings = priors or Priors(), settings or SamplerSettings()
    made = designs.build(frame, formula, family=family, link=link, weights=weights)
    draws = sampler.sample(made, priors, settings, progress)
    if draws.divergences and settings.acceptance < sampler.CAREFUL:
        settings = replace(settings, acceptance=sampler.CAREFUL)
        draws = sampler.sample(made, priors, settings, progress)
    return Posterior(made, draws, priors, settings)
