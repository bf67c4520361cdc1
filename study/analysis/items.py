"""Which categories and which items people foretell, and whether that goes with the quality of the explanation."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go
from scipy.stats import spearmanr
from statsmodels.stats.proportion import proportion_confint

from core.errors import ForetellError
from study.analysis import plots
from study.bundle import Manifest


def table(frame: pd.DataFrame, by: Sequence[str] = ("category", "trial_type"), *, level: float = 0.95) -> pd.DataFrame:
    """`by`, answers, accuracy, low, high (Wilson's interval), the least foretold first.

    Raises
    ------
    ForetellError
        The responses lack a column of `by`.
    """
    for name in by:
        if name not in frame:
            raise ForetellError(f"The responses have no column {name!r}: map it, or leave it out.")
    made = frame.groupby(list(by), observed=True)["correct"].agg(answers="size", right="sum").reset_index()
    low, high = proportion_confint(made["right"], made["answers"], alpha=1 - level, method="wilson")
    made = made.assign(accuracy=made["right"] / made["answers"], low=low, high=high)
    return made.drop(columns="right").sort_values(["accuracy", *by], ignore_index=True)


def trials(manifest: Manifest) -> pd.DataFrame:
    """item and what the study froze about its explanations: every number of its teaching set and of its map."""
    rows = []
    for trial in manifest.trials:
        numbers = {**trial.teaching, **trial.saliency, "ai_probability": trial.ai_probability}
        kept = {name: value for name, value in numbers.items() if isinstance(value, int | float)}
        rows.append({"item": trial.id, "relevance": trial.relevance, **kept})
    return pd.DataFrame(rows)


def against(frame: pd.DataFrame, scores: pd.DataFrame, score: str) -> pd.DataFrame:
    """Human fidelity of each item and condition beside a score of its explanation.

    Parameters
    ----------
    scores
        One row for each ``item`` (or ``category``) with a column `score`: of `trials`, or the insertion or deletion
        area of its map.

    Returns
    -------
    pandas.DataFrame
        condition, trial_type, the item, answers, accuracy, low, high, and the score.
    """
    key = next((name for name in ("item", "category") if name in frame and name in scores), None)
    if key is None or score not in scores:
        raise ForetellError(
            f"The scores need a column {score!r} and one of 'item', 'category' that the responses have."
        )
    if scores[key].duplicated().any():
        raise ForetellError(f"The column {key!r} of the scores repeats itself: keep one row for each.")
    return table(frame, ("condition", "trial_type", key)).merge(scores[[key, score]].dropna(), on=key, how="inner")


def association(joined: pd.DataFrame, score: str) -> pd.DataFrame:
    """condition, items, rho, p: Spearman's rank correlation of accuracy and score over items."""
    rows = []
    for name, part in joined.groupby("condition", sort=False):
        rho, p = spearmanr(part["accuracy"], part[score]) if len(part) > 2 else (float("nan"), float("nan"))
        rows.append((name, len(part), float(rho), float(p)))
    return pd.DataFrame(rows, columns=["condition", "items", "rho", "p"])


def figure(joined: pd.DataFrame, score: str) -> go.Figure:
    """Accuracy of each item by its score, from `against`."""
    key = "item" if "item" in joined else "category"
    return plots.scatter(joined, x=score, y="accuracy", by="condition", text=key, x_title=score, title="Foretold")
