"""The variance that a logistic or ordinal mixed model explains on the logit scale: R2 and intraclass correlation.

Nakagawa, Johnson & Schielzeth (2017), doi:10.1098/rsif.2017.0213; of random slopes the mean over rows (Johnson, 2014,
doi:10.1111/2041-210X.12225).
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from core.errors import ForetellError
from study.analysis.models import coding, marginal
from study.analysis.models import formula as formulas
from study.analysis.models.records import MixedModel

FAMILIES = ("binomial", "ordinal")
SINGLE = math.pi**2 / 3
"""Variance of a single response on the logit scale: that of the logistic distribution."""


def compute_explained_variance(frame: pd.DataFrame, model: MixedModel) -> pd.DataFrame:
    """Compute R2 and intraclass correlation of a mixed model with the logit link.

    Returns
    -------
    pandas.DataFrame
        One row for each variance of a single response on the link scale: ``theoretical`` (pi^2 / 3) and, of a logistic
        model, ``delta`` (1 / (p (1 - p)), p the share of successes); r2_marginal (fixed effects), r2_conditional (with
        the random ones), icc (random among random and residual).

    Raises
    ------
    ForetellError
        Another family or link, or infinite coefficients.
    """
    if model.family not in FAMILIES or marginal.get_link(model) != "logit":
        raise ForetellError(f"The explained variance is known of models with the logit link; this is {model.family}.")
    if model.diverging:
        raise ForetellError("A model with infinite coefficients explains no finite share of the variance.")
    data, text = formulas.prepare_formula(frame, model.formula)
    design = model.design_with_dropped(data, text)[:, : len(model.coefficients)]
    fixed = float(np.var(design @ np.array([c.estimate for c in model.coefficients]), ddof=1))
    random = float(np.mean(marginal.compute_variance(data, text, model)))
    singles = {"theoretical": SINGLE}
    if model.family == "binomial":
        hits, responses = coding.read_response(data, text, model.weights)
        share = float(hits.sum() / responses.sum())
        singles["delta"] = 1 / (share * (1 - share))
    rows = [
        (name, fixed / (fixed + random + one), (fixed + random) / (fixed + random + one), random / (random + one))
        for name, one in singles.items()
    ]
    return pd.DataFrame(rows, columns=["method", "r2_marginal", "r2_conditional", "icc"])


def describe(frame: pd.DataFrame, model: MixedModel) -> str:
    """Describe the explained variance (theoretical) in a sentence; empty where a model has none or it is not known."""
    if not model.blocks:
        return ""
    try:
        shares = compute_explained_variance(frame, model).iloc[0]
    except ForetellError:
        return ""
    icc = f"{shares['icc']:.2f}".removeprefix("0")
    return (
        f"On the logit scale the fixed effects explain {shares['r2_marginal']:.1%} of the variance (marginal R²), with "
        f"the random effects {shares['r2_conditional']:.1%} (conditional R²); the intraclass correlation is {icc} "
        "(Nakagawa et al., 2017)."
    )
