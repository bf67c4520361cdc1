"""How far each category and image is from the others: the conditional modes of the largest model's random effects."""

from __future__ import annotations

import pandas as pd

from core.errors import ForetellError
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, has_models
from study.analysis.models import intervals
from study.analysis.models.sentences import words

MOST = 3_000
"""Random effects whose covariance, a dense matrix, is inverted."""


def tabulate(study: AnalysedStudy) -> pd.DataFrame:
    """Tabulate group, term, level, mode and sd (log-odds), in each term the lowest first; of categories and images.

    Raises
    ------
    ForetellError
        There are more than `MOST` random effects.
    """
    model = study.fitted_models.largest
    if (count := sum(block.modes.size for block in model.blocks)) > MOST:
        raise ForetellError(f"The model has {count:,} random effects; up to {MOST:,} are computed.")
    modes = intervals.conditional_modes(study.frame, model)
    modes = modes[modes["group"] != "participant"]
    ordered = modes.sort_values(["group", "term", "mode"], ignore_index=True)
    return ordered.assign(term=ordered["term"].map(words))[["group", "term", "level", "mode", "sd"]]


ANALYSIS = ExploratoryAnalysis(
    "Categories and images: deviations",
    "Conditional modes of the random effects of the largest model, in log-odds: by how much a category or image is "
    "easier (above 0) or harder than the average one, or the effect of an explanation larger or smaller there; with "
    "the SD that is left given the responses. They are drawn towards 0 where responses are few.",
    lambda study: (tabulate(study), None),
    has_models,
)
