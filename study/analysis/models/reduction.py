"""Fits whose random effects are reduced where they are singular."""

from __future__ import annotations

from typing import Any

import pandas as pd

from study.analysis.models import formula as formulas
from study.analysis.models import mixed, random_effects
from study.analysis.models.records import MixedModel


def fit_reduced(frame: pd.DataFrame, fixed: str, random: str, **settings: Any) -> tuple[MixedModel, str]:
    """Fit a model with as many random effects as it is not singular with (`random_effects.RULE`); return it and those.

    Parameters
    ----------
    fixed
        Response and fixed effects: ``"correct ~ condition"``.
    settings
        Of `study.analysis.models.mixed.fit`; by default tests have degrees of freedom where slopes were asked for, as
        participants still differ where a singular fit leaves none.
    """
    settings = {"has_df": formulas.has_slopes(f"y ~ {random}"), **settings}
    return random_effects.reduce(
        random,
        lambda effects, near: mixed.fit(frame, f"{fixed} + {effects}", near=near, **settings),
        lambda made: made.effects,
    )
