"""Robustness checks of the interaction model: a Bayesian fit, and GEE (averaged over the population).

A check agrees within its own limits or reveals an error. Both come from statsmodels. A sentence next to the numbers
explains the differences to expect.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix, hstack
from statsmodels.genmod.bayes_mixed_glm import BinomialBayesMixedGLM
from statsmodels.genmod.cov_struct import Exchangeable
from statsmodels.genmod.families import Binomial
from statsmodels.genmod.generalized_estimating_equations import GEE
from statsmodels.tools.sm_exceptions import ConvergenceWarning

from core.errors import ForetellError
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, TableAndFigure, has_models
from study.analysis.models import coding
from study.analysis.models import formula as formulas
from study.analysis.models.records import Floats, MixedModel
from study.analysis.models.sentences import words
from study.analysis.models.threads import one_blas_thread

ATTENUATION = 16 * np.sqrt(3) / (15 * np.pi)
"""c of Zeger, Liang & Albert (1988), doi:10.2307/2531734: a population's log-odds are those of a participant divided by
sqrt(1 + c^2 variance)."""
PRIOR_SD = 2.0
"""Prior standard deviation of the Bayesian model's coefficients and of its log standard deviations."""

EXPLANATIONS: Mapping[str, str] = {
    "bayes": (
        "Bayesian (normal priors of standard deviation 2, mean-field variational approximation): the estimates should "
        "agree to a fraction of a standard error; its own standard errors treat all parameters as independent and are "
        "far too small, so do not use them for inference."
    ),
    "gee": (
        "GEE (exchangeable within participants, robust standard errors): estimates apply to the population, not to one "
        "participant, and are therefore smaller by the factor sqrt(1 + 0.35 variance); the rescaled ones undo that. "
        "GEE models no categories and images, so estimates differ if those are unevenly distributed over trial types."
    ),
}
"""The reason why each differs from the mixed model."""
MOST_BAYESIAN = 200_000
"""Responses up to which the Bayesian model is fitted: it takes 2 s of processor time for 14,000, a minute for
145,000, and does not end in ten for a million."""


def explanations(responses: int) -> tuple[str, ...]:
    """Explain why each method differs from the mixed model of so many responses, or why it was left out."""
    return explain_omission(responses) or EXPLANATIONS["bayes"], EXPLANATIONS["gee"]


def explain_omission(responses: int) -> str | None:
    """Explain why so many responses have no Bayesian cross-check; None where they have one."""
    if responses <= MOST_BAYESIAN:
        return None
    return (
        f"Bayesian: not fitted, because it would take many minutes with {responses:,} responses; the limit is "
        f"{MOST_BAYESIAN:,}."
    )


@one_blas_thread()
def table(frame: pd.DataFrame, model: MixedModel) -> pd.DataFrame:
    """Tabulate the estimates side by side.

    Returns
    -------
    pandas.DataFrame
        term, mixed, mixed_se, bayes, bayes_se, gee, gee_se, gee_rescaled. Of a model with infinite coefficients the
        priors keep the Bayesian ones finite, and the others are missing where they do not exist; the Bayesian ones are
        missing where there are more responses than `MOST_BAYESIAN`.

    Raises
    ------
    ForetellError
        The model is not binomial with single responses, or has correlated random effects.
    """
    if model.family != "binomial" or any(len(block.terms) > 1 for block in model.blocks):
        raise ForetellError("Robustness checks need a binomial model without correlated random effects.")
    design = model.design(frame)
    hits, responses = coding.read_response(frame, model.formula)
    if (responses != 1).any():
        raise ForetellError("Robustness checks need one response per row, not counts.")
    finite = np.array([c.term not in model.diverging for c in model.coefficients])
    start = np.where(finite, [c.estimate for c in model.coefficients], 0.0)
    effects = _list_effects(frame, model)
    bayes, bayes_se = (
        _fill_missing(len(start)) if explain_omission(len(frame)) else _bayes(design, hits, effects, start)
    )
    people = formulas.levels(frame, model.blocks[0].group)[0].astype(np.float64)
    gee, gee_se = _gee(design, hits, people) if finite.all() else _fill_missing(len(start))
    moved = sum(
        float(block.covariance[0, 0] * z.power(2).sum()) for block, z in zip(model.blocks, effects, strict=True)
    )
    scale = np.sqrt(1 + ATTENUATION**2 * moved / len(frame))
    return pd.DataFrame(
        {
            "term": [c.term for c in model.coefficients],
            "mixed": [model.limit(c) for c in model.coefficients],
            "mixed_se": [np.nan if c.se is None else c.se for c in model.coefficients],
            "bayes": bayes,
            "bayes_se": bayes_se,
            "gee": gee,
            "gee_se": gee_se,
            "gee_rescaled": gee * scale,
        }
    )


def _fill_missing(size: int) -> tuple[Floats, Floats]:
    return np.full(size, np.nan), np.full(size, np.nan)


def _list_effects(frame: pd.DataFrame, model: MixedModel) -> list[csr_matrix]:
    """List the (rows, levels) design of each random term."""
    columns, effects = formulas.slopes(frame, model.formula), []
    for block in model.blocks:
        codes, names = formulas.levels(frame, block.group)
        places = (np.arange(len(codes)), codes)
        effects.append(csr_matrix((columns[block.terms[0]], places), shape=(len(codes), len(names))))
    return effects


def _bayes(design: Floats, hits: Floats, columns: list[csr_matrix], start: Floats) -> tuple[Floats, Floats]:
    """Estimate posterior means and standard deviations of the coefficients from `start`: always the same numbers."""
    identity = np.concatenate([np.full(c.shape[1], k) for k, c in enumerate(columns)])
    model = BinomialBayesMixedGLM(hits, design, hstack(columns).tocsr(), identity, vcp_p=PRIOR_SD, fe_p=PRIOR_SD)
    mean = np.concatenate([start, np.full(len(columns), -0.5), np.zeros(len(identity))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gradient is never exactly zero
        # Its default, BFGS, keeps a matrix over every participant and category: a minute where there are a thousand.
        posterior = model.fit_vb(mean=mean, sd=np.full(len(mean), 0.1), fit_method="L-BFGS-B")
    return np.asarray(posterior.fe_mean), np.asarray(posterior.fe_sd)


def _gee(design: Floats, hits: Floats, people: Floats) -> tuple[Floats, Floats]:
    order = np.argsort(people, kind="stable")
    fit = GEE(hits[order], design[order], people[order], family=Binomial(), cov_struct=Exchangeable()).fit()
    return np.asarray(fit.params), np.asarray(fit.bse)


def _compute(study: AnalysedStudy) -> TableAndFigure:
    made = table(study.frame, study.fitted_models.largest)
    return made.assign(term=made["term"].map(words)), None


ANALYSIS = ExploratoryAnalysis(
    "Robustness checks: GEE and Bayesian fits",
    lambda study: " ".join(explanations(len(study.frame))),
    _compute,
    has_models,
)
