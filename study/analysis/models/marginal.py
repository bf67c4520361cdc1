"""Predictions of a mixed model on the link scale, the response scale and the population's.

On the response scale every random effect is zero, as in R's emmeans and marginaleffects: a probability of a participant
in the middle, not the share of successes. On the population's it is averaged over the random effects,
E[g^-1(x beta + b)] with b normal: by Gauss-Hermite quadrature for the logit, in closed form otherwise (Zeger, Liang &
Albert, 1988, doi:10.2307/2531734). Standard errors by the delta method from the coefficients' covariance, the
variances taken as known.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import pandas as pd
from scipy.special import expit, logit, ndtr, ndtri
from scipy.stats import norm

from core.errors import ForetellError
from study.analysis.models import estimability
from study.analysis.models import formula as formulas
from study.analysis.models.records import Floats, MixedModel

NODES = 41
Scale = Literal["link", "response", "population"]
SCALES: tuple[Scale, ...] = get_args(Scale)
LINKS = {"binomial": "logit", "ordinal": "logit", "poisson": "log", "gaussian": "identity"}
"""Of the families whose predictions are known."""


def get_link(model: MixedModel) -> str:
    """Return the model's link: logit, probit, log or identity.

    Raises
    ------
    ForetellError
        The family has no predictions here.
    """
    if model.family not in LINKS:
        raise ForetellError(
            f"Means and effects are those of {', '.join(LINKS)} models; this one is {model.family}: choose one of them."
        )
    return model.link or LINKS[model.family]


def predict(frame: pd.DataFrame, model: MixedModel, scale: Scale = "population") -> tuple[Floats, Floats]:
    """Predict each row (n,); with (n, p) the derivative by the coefficients.

    A prediction is missing where the data do not determine it, and the derivative also where it has no standard error:
    a prediction that is certain, or infinite.
    """
    data, text = formulas.prepare_formula(frame, model.formula)
    return predict_prepared(data, text, model, scale)


def predict_prepared(data: pd.DataFrame, formula: str, model: MixedModel, scale: Scale) -> tuple[Floats, Floats]:
    """Return what `predict` does, of data and a formula that are prepared."""
    weights = model.design_with_dropped(data, formula)
    design = weights[:, : len(model.coefficients)]
    eta = design @ _estimates(model) + formulas.offset(data, formula)
    variance = compute_variance(data, formula, model) if scale == "population" else np.zeros(len(data))
    value, slope = (eta, np.ones(len(eta))) if scale == "link" else _invert(get_link(model), eta, variance)
    is_estimable = estimability.is_estimable(weights, model)
    has_value = is_estimable if scale == "link" else estimability.has_value(weights, model)
    gradient = np.where(is_estimable[:, None], slope[:, None] * design, np.nan)
    return np.where(has_value, value, np.nan), gradient


def _invert(link: str, eta: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Average the inverse of a link over normal random effects (n,), with the derivative by eta."""
    if link == "identity":
        return eta, np.ones(len(eta))
    if link == "log":
        rate = np.exp(eta + variance / 2)
        return rate, rate
    if link == "probit":
        spread = np.sqrt(1 + variance)
        return ndtr(eta / spread), norm.pdf(eta / spread) / spread
    return average_probability(eta, variance)


def transform(link: str, value: Floats) -> tuple[Floats, Floats]:
    """Return a link's value of means on the response scale (n,), with its derivative; missing where it is infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if link == "log":
            made = np.log(value), 1 / value
        elif link == "logit":
            made = logit(value), 1 / (value * (1 - value))
        elif link == "probit":
            made = ndtri(value), 1 / norm.pdf(ndtri(value))
        else:
            made = value, np.ones(len(value))
    known = np.isfinite(made[0]) & np.isfinite(made[1])
    return np.where(known, made[0], np.nan), np.where(known, made[1], np.nan)


def invert(link: str, value: Floats) -> Floats:
    """Return the mean (n,) that a link's value belongs to."""
    return _invert(link, value, np.zeros(len(value)))[0]


def _estimates(model: MixedModel) -> Floats:
    return np.array([c.estimate for c in model.coefficients])


def compute_variance(frame: pd.DataFrame, formula: str, model: MixedModel) -> Floats:
    """Return (n,) variance of the random part of each row's linear predictor."""
    columns = formulas.slopes(model.recode(frame), formula)
    total = np.zeros(len(frame))
    for block in model.blocks:
        z = np.column_stack([columns[term] for term in block.terms])
        total += np.einsum("ni,ij,nj->n", z, block.covariance, z)
    return total


def average_probability(eta: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Average expit(eta + b) over a normal b (n,), with the derivative by eta."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    p = expit(eta[:, None] + np.sqrt(variance)[:, None] * nodes)
    share = weights / weights.sum()
    return p @ share, (p * (1 - p)) @ share
