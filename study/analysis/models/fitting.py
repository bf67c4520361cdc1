"""One run of a fit: by `glmm` where it knows the random terms, else by the search of our own."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import glmm
import numpy as np
import pandas as pd

from core.errors import ForetellError
from study.analysis.models import densities, linear, search, starts
from study.analysis.models import formula as formulas
from study.analysis.models.densities import Density
from study.analysis.models.records import EffectColumns, Floats
from study.analysis.models.threads import one_blas_thread

MOST_EFFECTS = 2000
"""Random effects up to which the search of our own, whose gradient is exact, is the faster one where there are slopes:
a second for a study of the paper's size, which takes `glmm` ten."""

FAMILIES = ("binomial", "ordinal", "poisson", "gaussian", "gamma", "negativebinomial", "inversegaussian")
"""Families of responses; all but the ordinal one are those of `glmm`."""
SEARCHED = {"binomial", "gaussian", "poisson"}
"""Families that are searched from several starts where responses are few."""


@dataclass(frozen=True)
class FitSettings:
    """Settings of a fit.

    Attributes
    ----------
    link
        ``"logit"`` or ``"probit"`` of a binomial model; the family's own if None.
    nodes
        Of adaptive Gauss-Hermite quadrature; 1 is the Laplace approximation.
    reml
        Of a gaussian model: restricted maximum likelihood.
    weights
        Column of prior weights; of a binomial share the number of responses.
    """

    family: str = "binomial"
    link: str | None = None
    nodes: int = 1
    reml: bool = False
    weights: str | None = None

    @property
    def density(self) -> Density | None:
        """The density with which `study.analysis.models.laplace` computes the likelihood; None where it does not."""
        return densities.find(self.family, self.link) if self.nodes == 1 else None


@one_blas_thread()
def run(
    frame: pd.DataFrame, formula: str, settings: FitSettings, *, errors: bool = True, near: EffectColumns = ()
) -> Any:
    """Fit a formula in the notation of `glmm`; random terms come out in the order of their numbers of levels.

    `glmm` puts them in that order itself, and panics where a search without an end (separation, rank deficiency) leaves
    nothing to put back.

    Parameters
    ----------
    errors
        Whether exact standard errors are needed; without them a fit is faster.
    near
        Random effects of a similar fit, from which the search of our own starts.

    Raises
    ------
    ForetellError
        The formula cannot be fitted.
    """
    formula = formulas.put_largest_first(frame, formula)
    density = settings.density
    ours = density is not None and formulas.has_slopes(formula) and count_effects(frame, formula) <= MOST_EFFECTS
    if formulas.is_known_to_glmm(formula) and not ours:
        return _best(frame, formula, settings, errors)
    if not (settings.family == "gaussian" or density):
        raise ForetellError(
            f"The model {formula!r} cannot be fitted: '||', '0 +' and slopes without a fixed effect are known of "
            "gaussian models, and of binomial (logit, probit) and poisson models with the Laplace approximation. Write "
            "correlated terms with an intercept, as in (x | id), and give every slope a fixed effect."
        )
    plain = _glmm(frame, formulas.intercepts(formula), settings, errors)
    if not math.isfinite(plain.loglik):  # failed, or separated: what is left of the rows is fitted for itself
        return plain
    if density is None:
        return linear.fit(frame, formula, plain, settings.reml)
    try:
        return search.fit(frame, formula, plain, density, errors=errors, near=near)
    except (ValueError, KeyError) as error:
        raise ForetellError(f"The model {formula!r} cannot be fitted: {error}") from error


def count_effects(frame: pd.DataFrame, formula: str) -> int:
    """Count random effects in all."""
    blocks = formulas.blocks(frame, formula)
    sizes = {group: len(formulas.levels(frame, group)[1]) for group in {group for group, _, _ in blocks}}
    return sum(sizes[group] * len(names) for group, names, _ in blocks)


def _best(frame: pd.DataFrame, formula: str, settings: FitSettings, errors: bool) -> Any:
    """Return the fit of `glmm`; with few responses the best of several searches."""
    first = _glmm(frame, formula, settings, errors)
    if settings.family not in SEARCHED or not len(first.re_groups) or not math.isfinite(first.loglik):
        return first
    responses = starts.count_responses(first)
    if not starts.is_few(responses):
        return first
    if np.any(first.aliased):  # `glmm` takes no start of such a model
        return first if settings.density is None else search.fit(frame, formula, first, settings.density, errors=errors)

    def climb(beta: Floats, theta: Floats) -> starts.End:
        return starts.of_fit(_glmm(frame, formula, settings, False, {"beta": beta, "theta": theta}))

    lowest = starts.compute_lowest(responses) if settings.family == "binomial" else -math.inf
    best, maxima = starts.search(starts.of_fit(first), lowest, formulas.blocks(frame, formula), climb)
    if errors and best is not first:
        at = starts.of_fit(best)
        best = _glmm(frame, formula, settings, errors, {"beta": at.beta, "theta": at.theta})
    return starts.with_maxima(best, maxima)


def _glmm(
    frame: pd.DataFrame, formula: str, settings: FitSettings, errors: bool, start: dict[str, Floats] | None = None
) -> Any:
    options: dict[str, Any] = {"reml": settings.reml} if settings.family == "gaussian" else {}
    if settings.weights is not None:
        options["weights"] = frame[settings.weights].to_numpy(dtype=np.float64)
    if not errors:
        options["wald_se"] = "rx"
    with warnings.catch_warnings():  # every one of them is in fit.warnings, and becomes a message
        warnings.simplefilter("ignore", glmm.DiagnosticWarning)
        try:
            return glmm.fit(
                frame,
                formula,
                family=settings.family,
                link=settings.link,
                nagq=settings.nodes,
                anova_test="Wald",
                warm_start=start,
                **options,
            )
        except (ValueError, TypeError, KeyError, NotImplementedError) as error:
            raise ForetellError(f"The model {formula!r} cannot be fitted: {error}") from error
