"""The estimated means that a plan asks for, of the largest model."""

from __future__ import annotations

from itertools import product

import pandas as pd

from core.errors import ForetellError
from study.analysis.means.grid import label
from study.analysis.means.means import EstimatedMeans, estimate_means
from study.analysis.means.request import list_contrasts, parse_request
from study.analysis.models.records import MixedModel
from study.bundle import TRIAL_TYPES
from study.plan.means import PlannedMeans

LEVELS = {"trial_type": TRIAL_TYPES, "saliency": (0, 1), "examples": (0, 1)}


def check(planned: PlannedMeans) -> None:
    """Refuse contrasts that no estimate can have, before a study is built.

    Raises
    ------
    ForetellError
        A contrast names no level, has weights that do not sum to zero, or cannot be read.
    """
    for text in planned.of:
        factors = parse_request(text).factors
        cells = product(*(LEVELS[name] for name in factors))
        list_contrasts(planned.contrasts, [label(dict(zip(factors, cell, strict=True))) for cell in cells])


def estimate(
    frame: pd.DataFrame, model: MixedModel, planned: PlannedMeans, *, level: float
) -> dict[str, EstimatedMeans | str]:
    """Estimate each of the planned means, by what the plan writes; where that is impossible, a sentence says why."""
    made: dict[str, EstimatedMeans | str] = {}
    for text in planned.of:
        try:
            made[text] = estimate_means(
                frame,
                model,
                text,
                contrasts=planned.contrasts,
                adjust=planned.adjust,
                scale=planned.scale,
                level=level,
            )
        except ForetellError as error:
            made[text] = str(error)
    return made
