"""Accuracies that the largest model estimates, and all pairs of conditions with simultaneous intervals."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from core.errors import ForetellError
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, has_models
from study.analysis.means.grid import label
from study.analysis.means.means import EstimatedMeans, estimate_means
from study.analysis.means.request import PAIRWISE
from study.analysis.planned.contrasts import FACTORS

ASKED = "saliency * examples | trial_type"
ACCURACY = ("accuracy", "low", "high")


def estimate(study: AnalysedStudy, contrasts: Sequence[str]) -> EstimatedMeans:
    """Estimate the accuracy of each condition and trial type, averaged over the random effects, and their contrasts.

    Raises
    ------
    ForetellError
        The largest model has no two factors, as a plan may have it.
    """
    model = study.fitted_models.largest
    return estimate_means(study.frame, model, ASKED, contrasts=contrasts, adjust="mvt", scale="population")


def tabulate_means(study: AnalysedStudy) -> pd.DataFrame:
    """Tabulate trial_type, condition, accuracy, low, high of the conditions that have participants."""
    made = estimate(study, ()).means
    names = {tuple(values.values()): name for name, values in FACTORS.items()}
    pairs = made[["saliency", "examples"]].astype(int).itertuples(index=False, name=None)
    table = made.assign(condition=[names[pair] for pair in pairs]).rename(columns={"estimate": "accuracy"})
    present = table["condition"].isin(set(study.frame["condition"]))
    return table.loc[present, ["trial_type", "condition", *ACCURACY]].reset_index(drop=True)


def tabulate_pairs(study: AnalysedStudy) -> pd.DataFrame:
    """Tabulate trial_type, contrast, points (percentage points), points_low, points_high, p, p_mvt of all pairs.

    Raises
    ------
    ForetellError
        There is a single condition.
    """
    made = estimate(study, (PAIRWISE,)).contrasts
    names = {label(values): name for name, values in FACTORS.items()}
    sides = [[names[side] for side in text.split(" - ")] for text in made["contrast"]]
    present = [set(pair) <= set(study.frame["condition"]) for pair in sides]
    if not any(present):
        raise ForetellError("There is only one condition, and no other to compare it with.")
    points = {f"points{end}": 100 * made[name] for end, name in (("", "estimate"), ("_low", "low"), ("_high", "high"))}
    table = made.assign(contrast=[" - ".join(pair) for pair in sides], **points)
    columns = ["trial_type", "contrast", *points, "p", "p_mvt"]
    return table.loc[present, columns].reset_index(drop=True)


MEANS = ExploratoryAnalysis(
    "Estimated accuracy",
    "Accuracies that the largest model estimates, averaged over its random effects, with 95% intervals.",
    lambda study: (tabulate_means(study), None),
    has_models,
    is_of_predictions=True,
)
PAIRS = ExploratoryAnalysis(
    "All pairs of conditions",
    "Differences in estimated accuracy in percentage points. The 95% intervals of a trial type hold together, and p "
    "(max t) is corrected for its number of pairs (single-step max-t); p is uncorrected.",
    lambda study: (tabulate_pairs(study), None),
    has_models,
    is_of_predictions=True,
)
