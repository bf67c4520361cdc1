"""Mean levels that an ordinal mixed model predicts, averaged over its random effects or where each of them is 0.

E[level] = l_1 + sum_k (l_{k+1} - l_k) P(level > l_k), each probability averaged over normal random effects by
Gauss-Hermite quadrature as those of logistic models (`study.analysis.models.marginal`); with random effects of 0 it is
the mean class of R's emmeans. Standard errors by the delta method from the covariance of coefficients and thresholds
together, the variances of random effects taken as known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import expit

from study.analysis.models import estimability, marginal
from study.analysis.models import formula as formulas
from study.analysis.models.marginal import Scale
from study.analysis.models.records import Floats, MixedModel


def list_values(model: MixedModel) -> list[int]:
    """List the levels that occur, the lowest first, from the names of the thresholds: ``"1|2"``, ``"2|4"``."""
    pairs = [name.term.split("|") for name in model.thresholds]
    return [int(float(pairs[0][0])), *(int(float(high)) for _, high in pairs)]


def find_ends(model: MixedModel) -> tuple[int, int]:
    """Find the lowest and the highest level that occur."""
    lowest, *_, highest = list_values(model)
    return lowest, highest


def average(eta: Floats, variance: Floats, values: Sequence[int], cuts: Sequence[float]) -> tuple[Floats, list[Floats]]:
    """Average the mean level over normal random effects (n,); with its derivative by eta - threshold for each (n,)."""
    mean, slopes = np.full(len(eta), float(values[0])), []
    for cut, step in zip(cuts, np.diff(values), strict=True):
        above, density = marginal.average_probability(eta - cut, variance)
        mean = mean + step * above
        slopes.append(step * density)
    return mean, slopes


def predict(frame: pd.DataFrame, model: MixedModel) -> tuple[Floats, Floats]:
    """Predict the mean level of each row (n,); with (n, p + k) its derivative by the coefficients and thresholds.

    It is missing where the data do not determine it.
    """
    data, text = formulas.prepare_formula(frame, model.formula)
    return predict_prepared(data, text, model, "population")


def predict_prepared(data: pd.DataFrame, formula: str, model: MixedModel, scale: Scale) -> tuple[Floats, Floats]:
    """Return what `predict` does, of data and a formula that are prepared; on the response scale without variance."""
    weights = model.design_with_dropped(data, formula)
    design = weights[:, : len(model.coefficients)]
    eta = design @ np.array([c.estimate for c in model.coefficients]) + formulas.offset(data, formula)
    variance = marginal.compute_variance(data, formula, model) if scale == "population" else np.zeros(len(data))
    mean, slopes = average(eta, variance, list_values(model), [c.estimate for c in model.thresholds])
    gradient = np.column_stack([np.sum(slopes, axis=0)[:, None] * design, *(-slope for slope in slopes)])
    known = estimability.is_estimable(weights, model)
    return np.where(known, mean, np.nan), np.where(known[:, None], gradient, np.nan)


def find_limits(mean: Floats, half: Floats, model: MixedModel) -> tuple[Floats, Floats]:
    """Return limits (n,) of mean levels, symmetric in the logit of where they are on the scale, so they stay on it."""
    lowest, highest = find_ends(model)
    share, width = (mean - lowest) / (highest - lowest), half / (highest - lowest)
    middle, slope = marginal.transform("logit", share)
    low, high = (lowest + (highest - lowest) * expit(middle + side * slope * width) for side in (-1, 1))
    return low, high


def compute_standard_errors(gradient: Floats, model: MixedModel) -> Floats:
    """Compute standard errors (n,) from derivatives by the coefficients and thresholds (n, p + k)."""
    return estimability.apply_delta_method(gradient, model.joint_covariance)
