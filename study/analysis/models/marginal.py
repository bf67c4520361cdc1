"""Predictions of a logistic mixed model as probabilities, and the variance it explains.

Probabilities are those of the population: averaged over participants and categories, E[expit(x beta + b)] with b
normal, by Gauss-Hermite quadrature; for a participant with random effects of zero it is further from one half. Standard
errors by the delta method from the coefficients' covariance, the variances taken as known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from scipy.stats import norm

from core.errors import ForetellError
from study.analysis.models import estimability
from study.analysis.models import formula as formulas
from study.analysis.models.records import Floats, MixedModel

NODES = 41


def predictions(frame: pd.DataFrame, model: MixedModel, *, level: float = 0.95) -> pd.DataFrame:
    """Return predicted probability of each cell of the fixed effects.

    Returns
    -------
    pandas.DataFrame
        The cell's predictors, ``probability`` with ``se``, ``low``, ``high`` (interval on the logit scale), and
        ``typical``, the probability where every random effect is zero. Standard errors are missing where the cell
        rests on a coefficient without a finite estimate.
    """
    _check(model)
    data, text = formulas.prepare_formula(frame, model.formula)
    names = formulas.columns(data, formulas.extract_fixed_effects(text))
    cells = data.drop_duplicates(names) if names else data.head(1)
    cells = cells.sort_values(names) if names else cells
    p, gradient = _predict(cells, text, model)
    se = estimability.compute_standard_errors(gradient, model)
    half = norm.ppf((1 + level) / 2) * np.divide(se, p * (1 - p), out=np.full_like(p, np.nan), where=p * (1 - p) > 0)
    middle = logit(p)
    return (
        cells[names]
        .assign(
            probability=p,
            se=se,
            low=expit(middle - half),
            high=expit(middle + half),
            typical=expit(model.design(cells, text) @ _estimates(model)),
        )
        .reset_index(drop=True)
    )


def population(cells: pd.DataFrame, model: MixedModel) -> tuple[Floats, Floats]:
    """Average each row's probability (n,) over participants and categories; (n, p) its derivative by the estimates.

    The probability is missing where the data do not determine it, and the derivative also where it is 0 or 1.
    """
    data, text = formulas.prepare_formula(cells, model.formula)
    return _predict(data, text, model)


def _predict(data: pd.DataFrame, formula: str, model: MixedModel) -> tuple[Floats, Floats]:
    """Return what `population` does, of data and a formula that are prepared."""
    weights = model.design_with_dropped(data, formula)
    design = weights[:, : len(model.coefficients)]
    p, slope = average_probability(design @ _estimates(model), _variance(data, formula, model))
    gradient = np.where(estimability.is_estimable(weights, model)[:, None], slope[:, None] * design, np.nan)
    return np.where(estimability.has_value(weights, model), p, np.nan), gradient


def average_effects(
    frame: pd.DataFrame, model: MixedModel, variables: Sequence[str], *, by: str | None = None, level: float = 0.95
) -> pd.DataFrame:
    """Average marginal effects: what changing a predictor does to the probability, averaged over the rows.

    A factor or a 0/1 column is set to each of its values and compared with the first; of any other number the effect
    is that of one unit more.

    Returns
    -------
    pandas.DataFrame
        variable, value, ``by`` (all rows if None), effect (difference of probabilities), se, low, high. An effect is
        missing if it rests on a combination of predictors that the data do not determine.

    Raises
    ------
    ForetellError
        A variable is no predictor of the model.
    """
    _check(model)
    data, text = formulas.prepare_formula(frame, model.formula)
    known = formulas.columns(data, formulas.extract_fixed_effects(text))
    for name in [*variables, *([by] if by else [])]:
        if name not in known:
            raise ForetellError(f"{name!r} is no predictor of the model; it has {', '.join(known) or 'none'}.")
    data = model.recode(data)
    parts = [("all", data)] if by is None else list(data.groupby(by, observed=True, sort=True))
    rows = [
        (name, value, part, *_contrast(*changed, text, model, level))
        for name in variables
        for part, some in parts
        for value, changed in _changes(some, name).items()
    ]
    return pd.DataFrame(rows, columns=["variable", "value", by or "rows", "effect", "se", "low", "high"])


def compute_explained_variance(frame: pd.DataFrame, model: MixedModel) -> pd.DataFrame:
    """Compute ICC and R2 of a logistic mixed model: Nakagawa, Johnson & Schielzeth (2017), doi:10.1098/rsif.2017.0213.

    Returns
    -------
    pandas.DataFrame
        One row for each variance of a single response on the link scale: ``theoretical`` (pi^2 / 3) and ``delta``
        (1 / (p (1 - p)), p the share of successes); r2_marginal (fixed effects), r2_conditional (with the random
        ones), icc (random among random and residual; of random slopes the mean over rows, Johnson 2014).
    """
    _check(model)
    data, text = formulas.prepare_formula(frame, model.formula)
    if model.diverging:
        raise ForetellError("A model with infinite coefficients explains no finite share of the variance.")
    fixed = float(np.var(model.design(data, text) @ _estimates(model), ddof=1))
    random = float(np.mean(_variance(data, text, model)))
    hits, responses = formulas.response(data, text, model.weights)
    share = float(hits.sum() / responses.sum())
    rows = []
    for method, single in (("theoretical", math.pi**2 / 3), ("delta", 1 / (share * (1 - share)))):
        whole = fixed + random + single
        rows.append((method, fixed / whole, (fixed + random) / whole, random / (random + single)))
    return pd.DataFrame(rows, columns=["method", "r2_marginal", "r2_conditional", "icc"])


def _check(model: MixedModel) -> None:
    if model.family != "binomial":
        raise ForetellError(f"Probabilities are those of a binomial model; this one is {model.family}.")


def _estimates(model: MixedModel) -> Floats:
    return np.array([c.estimate for c in model.coefficients])


def _variance(frame: pd.DataFrame, formula: str, model: MixedModel) -> Floats:
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


def _changes(frame: pd.DataFrame, name: str) -> Mapping[object, tuple[pd.DataFrame, pd.DataFrame]]:
    """Yield for each value of a predictor the rows under it, and under the value it is compared with."""
    column = frame[name]
    if isinstance(column.dtype, pd.CategoricalDtype):
        values = list(column.cat.categories)
        levels = [pd.Categorical([value] * len(frame), categories=values) for value in values]
    elif not pd.api.types.is_numeric_dtype(column) or set(column.unique()) <= {0, 1}:
        values = [0, 1] if pd.api.types.is_numeric_dtype(column) else sorted(column.unique())
        levels = values
    else:
        return {"+1": (frame.assign(**{name: column + 1}), frame)}
    first = frame.assign(**{name: levels[0]})
    return {v: (frame.assign(**{name: made}), first) for v, made in zip(values[1:], levels[1:], strict=True)}


def _contrast(
    after: pd.DataFrame, before: pd.DataFrame, formula: str, model: MixedModel, level: float
) -> tuple[float, float, float, float]:
    """Return the mean difference of two sets of rows, its standard error and interval."""
    means, gradients = [], []
    for rows in (after, before):
        p, gradient = _predict(rows, formula, model)
        means.append(float(p.mean()))
        gradients.append(gradient.mean(axis=0))
    effect = means[0] - means[1]
    se = float(estimability.compute_standard_errors((gradients[0] - gradients[1])[None, :], model)[0])
    half = float(norm.ppf((1 + level) / 2)) * se
    return effect, se, effect - half, effect + half
