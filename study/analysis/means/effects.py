"""Average marginal effects: what changing a predictor does to the prediction, averaged over the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.stats import t

from core.errors import ForetellError
from study.analysis.means.grid import build_grid
from study.analysis.means.means import choose_covariance, find_df, predict
from study.analysis.means.request import parse_request
from study.analysis.models import estimability, marginal
from study.analysis.models import formula as formulas
from study.analysis.models.marginal import Scale
from study.analysis.models.records import MixedModel


def estimate_effects(
    frame: pd.DataFrame, model: MixedModel, asked: str, *, scale: Scale = "population", level: float = 0.95
) -> pd.DataFrame:
    """Estimate average marginal effects as they are asked for in text.

    Parameters
    ----------
    asked
        A predictor, or ``"a | b"`` for the rows of each level of b.

    Returns
    -------
    pandas.DataFrame
        As `average_effects`.

    Raises
    ------
    ForetellError
        The text names several predictors, or one that the model does not have.
    """
    request = parse_request(asked)
    if len(request.factors) > 1 or len(request.by) > 1:
        raise ForetellError(
            f"The effects {asked!r} name several predictors: ask for 'a' or 'a | b', once for each predictor."
        )
    build_grid(frame, model).check(request.by)
    by = request.by[0] if request.by else None
    return average_effects(frame, model, request.factors, by=by, level=level, scale=scale)


def average_effects(
    frame: pd.DataFrame,
    model: MixedModel,
    variables: Sequence[str],
    *,
    by: str | None = None,
    level: float = 0.95,
    scale: Scale = "population",
) -> pd.DataFrame:
    """Average the effect of each predictor over the rows that the model was fitted to.

    A factor or a 0/1 column is set to each of its values and compared with the first; of any other number the effect
    is that of one unit more. Predictions are probabilities, rates, means or, of an ordinal model, mean levels.

    Returns
    -------
    pandas.DataFrame
        variable, value, ``by`` (all rows if None), effect (difference of predictions), se, low, high (t, with the
        degrees of freedom of contrasts). An effect is missing if it rests on a combination of predictors that the data
        do not determine.

    Raises
    ------
    ForetellError
        A variable is no predictor of the model.
    """
    marginal.get_link(model)
    data, text = formulas.prepare_formula(frame, model.formula)
    known = formulas.columns(data, formulas.extract_fixed_effects(text))
    for name in [*variables, *([by] if by else [])]:
        if name not in known:
            raise ForetellError(f"{name!r} is no predictor of the model; it has {', '.join(known) or 'none'}.")
    data = model.recode(data)
    parts = [("all", data)] if by is None else list(data.groupby(by, observed=True, sort=True))
    keys, effects, gradients = [], [], []
    for name in variables:
        for part, some in parts:
            for value, changed in _changes(some, name).items():
                (after, slope), (before, first) = (predict(rows, text, model, scale) for rows in changed)
                keys.append((name, value, part))
                effects.append(after.mean() - before.mean())
                gradients.append(slope.mean(axis=0) - first.mean(axis=0))
    table = pd.DataFrame(keys, columns=["variable", "value", by or "rows"]).assign(effect=effects)
    gradient = np.array(gradients)
    se = estimability.apply_delta_method(gradient, choose_covariance(model, scale))
    half = t(find_df(frame, model, gradient)).ppf((1 + level) / 2) * se
    return table.assign(se=se, low=table["effect"] - half, high=table["effect"] + half)


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
