"""Accuracy by category and by item, and whether it depends on the quality of the explanation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy.stats import spearmanr
from statsmodels.stats.proportion import proportion_confint

from core.errors import ForetellError
from study import plots
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, TableAndFigure, has_trials
from study.analysis.means.adjustment import holm
from study.analysis.responses.accuracies import order
from study.bundle import Trial
from study.plan.covariates import TRIAL_COVARIATES

SCORES: Mapping[str, str] = {
    **{name: one.meaning for name, one in TRIAL_COVARIATES.items()},
    "stratum": "the measure that defines its stratum",
}
"""The properties of a trial and its explanations in words, by their names in the manifest."""


def table(frame: pd.DataFrame, by: Sequence[str] = ("category", "trial_type"), *, level: float = 0.95) -> pd.DataFrame:
    """Tabulate `by`, `responses`, accuracy, low and high (Wilson's interval), the least accurate first.

    Raises
    ------
    ForetellError
        The responses lack a column of `by`.
    """
    for name in by:
        if name not in frame:
            raise ForetellError(f"The responses have no column {name!r}: name one, or leave it out.")
    made = frame.groupby(list(by), observed=True)["correct"].agg(responses="size", right="sum").reset_index()
    low, high = proportion_confint(made["right"], made["responses"], alpha=1 - level, method="wilson")
    made = made.assign(accuracy=made["right"] / made["responses"], low=low, high=high)
    return made.drop(columns="right").sort_values(["accuracy", *by], ignore_index=True)


def tabulate_scores(trials: Iterable[Trial]) -> pd.DataFrame:
    """Tabulate item and each of `SCORES` that was frozen with the study and differs between its trials."""
    rows = [
        {"item": t.id}
        | {name: one.read(t) for name, one in TRIAL_COVARIATES.items()}
        | ({} if t.stratum is None else {"stratum": t.stratum.value})
        for t in trials
    ]
    known = pd.DataFrame(rows)
    return known[["item", *(name for name in SCORES if name in known and known[name].nunique() > 1)]]


def against(frame: pd.DataFrame, scores: pd.DataFrame, score: str) -> pd.DataFrame:
    """Return the human fidelity of each item and condition next to a score of its explanation.

    Parameters
    ----------
    scores
        One row for each ``item`` (or ``category``) with a column `score`: of `trials`, or the insertion or deletion
        area of its heatmap.

    Returns
    -------
    pandas.DataFrame
        condition (in the order of the design), trial_type, the item, `responses`, accuracy, low, high, and the score.
    """
    key = next((name for name in ("item", "category") if name in frame and name in scores), None)
    if key is None or score not in scores:
        raise ForetellError(
            f"The scores need a column {score!r} and one of 'item', 'category' that the responses have."
        )
    if scores[key].duplicated().any():
        raise ForetellError(f"The column {key!r} of the scores repeats itself: keep one row for each.")
    each = table(frame, ("condition", "trial_type", key)).merge(scores[[key, score]].dropna(), on=key, how="inner")
    named = order(each)
    each = each.sort_values(["trial_type", key], ignore_index=True)
    return each.sort_values("condition", key=lambda names: names.map(named.index), kind="stable", ignore_index=True)


def association(joined: pd.DataFrame, score: str) -> pd.DataFrame:
    """Tabulate condition, trial_type, items, rho, p: Spearman's rank correlation of accuracy and score over items.

    Each trial type for itself: over all of them it would mostly say that trials where the AI is right are easier to
    predict, also where no explanation was shown.
    """
    rows = []
    for (name, kind), part in joined.groupby(["condition", "trial_type"], sort=False, observed=True):
        varies = len(part) > 2 and part["accuracy"].nunique() > 1 and part[score].nunique() > 1
        rho, p = spearmanr(part["accuracy"], part[score]) if varies else (float("nan"), float("nan"))
        rows.append((name, kind, len(part), float(rho), float(p)))
    return pd.DataFrame(rows, columns=["condition", "trial_type", "items", "rho", "p"])


def associations(frame: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Tabulate score, condition, trial_type, items, rho, p, p_holm: `association` with every score, p corrected.

    Raises
    ------
    ForetellError
        No score, or the responses name no items.
    """
    names = [name for name in SCORES if name in scores]
    if not names:
        raise ForetellError("The explanations of this study do not differ in any number.")
    each = [association(against(frame, scores, name), name).assign(score=SCORES[name]) for name in names]
    table = pd.concat(each, ignore_index=True)[["score", "condition", "trial_type", "items", "rho", "p"]]
    return table.assign(p_holm=holm(table["p"].to_numpy(dtype=np.float64)))


def figure(joined: pd.DataFrame, score: str) -> go.Figure:
    """Plot the accuracy of each item by its score, from `against`."""
    key = "item" if "item" in joined else "category"
    named = SCORES.get(score, score)
    return plots.scatter(joined, x=score, y="accuracy", by="condition", text=key, x_title=named, title="Accuracy")


def _tabulate(study: AnalysedStudy) -> pd.DataFrame:
    return tabulate_scores(study.trials.values())


def _plot_against(score: str) -> ExploratoryAnalysis:
    def compute(study: AnalysedStudy) -> TableAndFigure:
        joined = against(study.frame, study.once(_tabulate), score)
        return joined, figure(joined, score)

    def is_known(study: AnalysedStudy) -> bool:
        return has_trials(study) and score in study.once(_tabulate)

    title = f"Trials by {SCORES[score]}"
    return ExploratoryAnalysis(title, "Each mark is a trial in one condition.", compute, is_known)


CATEGORIES = ExploratoryAnalysis(
    "Categories",
    "Correct responses to each category and trial type, the least accurate first. 95% Wilson intervals, as if all "
    "responses were independent.",
    lambda study: (table(study.frame), None),
)
ASSOCIATIONS = ExploratoryAnalysis(
    "Trials and their explanations",
    "Over trials, Spearman's rank correlation between participants' accuracy and each property of the explanation, "
    "in each condition and trial type; p by Holm's method is corrected for the number of rows.",
    lambda study: (associations(study.frame, study.once(_tabulate)), None),
    has_trials,
)
(
    P_LEARNER,
    GAIN,
    INSERTION,
    DELETION,
    RELEVANCE,
    EFFECTIVE_SAMPLES,
    AI_PROBABILITY,
    UNIT_GAP,
    DIFFICULTY,
    STRATUM,
) = map(_plot_against, SCORES)
