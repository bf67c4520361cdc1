"""Proportional odds: whether one odds ratio of an effect holds wherever the scale of an ordinal model is cut.

The model is compared with one in which each combination of the fixed effects has thresholds of its own, with the same
random terms, by their likelihood ratio (as ``nominal_test`` of R's ordinal). Both are fitted by the same Laplace
approximation, and the search for the larger starts at the smaller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.stats import chi2

from core.errors import ForetellError
from study.analysis.models import laplace, search
from study.analysis.models.densities import CumulativeLogit, Integers
from study.analysis.models.laplace import Laplace
from study.analysis.models.records import Floats, MixedModel
from study.analysis.models.sentences import LEVEL, describe_p
from study.analysis.models.threads import one_blas_thread


@dataclass(frozen=True)
class ProportionalOdds:
    """The comparison.

    Attributes
    ----------
    chisq, df, p
        Of the likelihood ratio.
    cells
        (S, p) columns of the fixed effects of each combination.
    thresholds
        (S, K - 1) of each.
    """

    chisq: float
    df: int
    p: float
    cells: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    thresholds: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    def list_odds_ratios(self, more: Floats, less: Floats) -> Floats:
        """List the odds ratios (K - 1,) of a level above each threshold, of one combination (p,) against another."""
        first, second = (int(np.argmin(np.abs(self.cells - cell).sum(axis=1))) for cell in (more, less))
        return np.asarray(np.exp(self.thresholds[second] - self.thresholds[first]))


@one_blas_thread()
def check(frame: pd.DataFrame, model: MixedModel) -> ProportionalOdds:
    """Compare an ordinal model with thresholds of its own for each combination of the fixed effects.

    Parameters
    ----------
    frame
        The rows the model was fitted to.

    Raises
    ------
    ForetellError
        The comparison is not possible: with two levels, without random terms, with fixed effects other than factors
        with all their interactions, or where a combination lacks a level.
    """
    _refuse(len(model.thresholds) < 2, "two levels have a single threshold")
    _refuse(not model.blocks, "the model has no random terms")
    likelihood, at = laplace.of(frame, model)
    cells, strata = np.unique(likelihood.design, axis=0, return_inverse=True)
    saturated = len(cells) == likelihood.design.shape[1] + 1
    _refuse(not saturated, "the fixed effects are not factors with all their interactions")
    strata = strata.ravel().astype(np.int64)
    counts = pd.crosstab(strata, likelihood.successes).to_numpy()
    _refuse(bool((counts == 0).any()), "a level never occurs in one of the combinations of the fixed effects")
    _refuse(len(cells) < 2, "there are no fixed effects")
    maximum = _climb(likelihood, at, cells, strata)
    own = len(cells) * len(model.thresholds)
    chisq = max(0.0, 2.0 * (maximum.point.loglik - model.loglik))
    df = (len(cells) - 1) * (len(model.thresholds) - 1)
    thresholds = CumulativeLogit(strata=strata).at(maximum.parameters[:own]).thresholds
    return ProportionalOdds(chisq, df, float(chi2.sf(chisq, df)), cells, thresholds)


def _refuse(is_impossible: bool, reason: str) -> None:
    if is_impossible:
        raise ForetellError(f"Proportional odds were not checked, because {reason}.")


def _climb(likelihood: Laplace, at: Floats, cells: Floats, strata: Integers) -> search.LikelihoodMaximum:
    """Climb from the model with common thresholds, which the larger one contains."""
    p = likelihood.design.shape[1]
    likelihood.at(at)
    assert isinstance(likelihood.density, CumulativeLogit)  # of an ordinal model
    start = CumulativeLogit(likelihood.density.thresholds - (cells @ at[:p])[:, None]).own
    parameters = np.concatenate([start, at[likelihood.fixed_size :]])
    rows = (np.zeros((len(strata), 0)), likelihood.successes, likelihood.responses)
    larger = Laplace(*rows, likelihood.blocks, CumulativeLogit(strata=strata), likelihood.offset)
    scale = np.zeros((len(parameters), len(parameters)))
    own = list(range(len(start)))
    scale[np.ix_(own, own)] = laplace.root(laplace.curvature(larger, parameters, own))
    widths = [np.full(laplace.triangle_size(b.width), 1 / math.sqrt(len(b.levels))) for b in larger.blocks]
    scale[len(start) :, len(start) :] = np.diag(np.concatenate(widths))
    return search.climb(larger, parameters, scale)


def describe(made: ProportionalOdds, level: float = LEVEL) -> str:
    """Say in a sentence whether one odds ratio holds at each threshold."""
    test = f"χ²({made.df}) = {made.chisq:.2f}, {describe_p(made.p)}"
    if made.p < level:
        return (
            f"Proportional odds do not hold ({test}): effects differ between the thresholds, and an odds ratio is an "
            "average over them. Report the shares of the levels too."
        )
    return f"No evidence against proportional odds ({test})."
