"""Mean levels that an ordinal mixed model predicts, averaged over its random effects.

E[level] = l_1 + sum_k (l_{k+1} - l_k) P(level > l_k), each probability averaged over normal random effects by
Gauss-Hermite quadrature as those of logistic models (`study.analysis.models.marginal`). Standard errors by the delta
method from the covariance of coefficients and thresholds together, the variances of random effects taken as known.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from study.analysis.models import estimability, marginal
from study.analysis.models import formula as formulas
from study.analysis.models.records import Floats, MixedModel


def list_values(model: MixedModel) -> list[int]:
    """List the levels that occur, the lowest first, from the names of the thresholds: ``"1|2"``, ``"2|4"``."""
    pairs = [name.term.split("|") for name in model.thresholds]
    return [int(float(pairs[0][0])), *(int(float(high)) for _, high in pairs)]


def predict(frame: pd.DataFrame, model: MixedModel) -> tuple[Floats, Floats]:
    """Predict the mean level of each row (n,); with (n, p + k) its derivative by the coefficients and thresholds.

    It is missing where the data do not determine it.
    """
    data, text = formulas.prepare_formula(frame, model.formula)
    weights = model.design_with_dropped(data, text)
    design = weights[:, : len(model.coefficients)]
    eta = design @ np.array([c.estimate for c in model.coefficients]) + formulas.offset(data, text)
    variance = marginal.compute_variance(data, text, model)
    values = list_values(model)
    mean, slope, by_threshold = np.full(len(eta), float(values[0])), np.zeros(len(eta)), []
    for threshold, step in zip(model.thresholds, np.diff(values), strict=True):
        above, density = marginal.average_probability(eta - threshold.estimate, variance)
        mean, slope = mean + step * above, slope + step * density
        by_threshold.append(-step * density)
    gradient = np.column_stack([slope[:, None] * design, *by_threshold])
    known = estimability.is_estimable(weights, model)
    return np.where(known, mean, np.nan), np.where(known[:, None], gradient, np.nan)


def compute_standard_errors(gradient: Floats, model: MixedModel) -> Floats:
    """Compute standard errors (n,) from derivatives by the coefficients and thresholds (n, p + k)."""
    return estimability.apply_delta_method(gradient, model.joint_covariance)
