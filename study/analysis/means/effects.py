"""Average marginal effects of a predictor, as they are asked for in text."""

from __future__ import annotations

import pandas as pd

from core.errors import ForetellError
from study.analysis.means.grid import build_grid
from study.analysis.means.request import parse_request
from study.analysis.models import marginal
from study.analysis.models.marginal import Scale
from study.analysis.models.records import MixedModel


def estimate_effects(
    frame: pd.DataFrame, model: MixedModel, asked: str, *, scale: Scale = "population", level: float = 0.95
) -> pd.DataFrame:
    """Estimate average marginal effects over the rows.

    Parameters
    ----------
    asked
        A predictor, or ``"a | b"`` for the rows of each level of b.

    Returns
    -------
    pandas.DataFrame
        As `study.analysis.models.marginal.average_effects`.

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
    return marginal.average_effects(frame, model, request.factors, by=by, level=level, scale=scale)
