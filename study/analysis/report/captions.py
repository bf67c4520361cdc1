"""Columns, headings and captions of the tables that both the page and the report show."""

from __future__ import annotations

import pandas as pd

from study.analysis.models import explained
from study.analysis.models.records import MixedModel
from study.analysis.models.sentences import coverage_text
from study.analysis.responses.adaptive import NOT_COMPARED, has_choices
from study.analysis.responses.outcome import find_outcome
from study.analysis.responses.periods import are_crossed
from study.bundle import TRIAL_TYPES, TYPE_LABELS
from study.tasks.task import Task

RATING_COLUMNS = (
    *("contrast", "level_more", "level_less", "level_difference", "difference_low", "difference_high", "p_holm"),
)
ODDS_COLUMNS = ("contrast", "odds_ratio", "odds_ratio_low", "odds_ratio_high", "p", "p_holm")
ACCURACY_COLUMNS = ("contrast", "accuracy_more", "accuracy_less", "points", "points_low", "points_high", "p_holm")
"""First what a reader looks for: the conditions in the order of the contrast's name, then their difference."""
LOG_ODDS_COLUMNS = ("contrast", "estimate", "se", "low", "high", "p", "p_holm")
"""In a table of their own: all columns in one do not fit a screen of 1,280 pixels."""
CONTRASTS = {"estimate": "Log-odds"}
MODELS = {"df": "Parameters"}
FIGURE_1 = "Mean accuracy with 95% intervals over participants. The dotted line is chance."
RATED = "Mean level with 95% intervals over participants; {count} is the highest level."
_CROSSED = (
    " Each interval is of one mean. Participants were in several conditions, so that differences are more precise than "
    "the overlap of intervals suggests: the contrasts have the intervals of differences."
)


def choose_columns(contrasts: pd.DataFrame) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Choose the columns of contrasts for a first and a second table: of accuracies, or of levels."""
    if find_outcome(contrasts).is_scored:
        return ACCURACY_COLUMNS, LOG_ODDS_COLUMNS
    return RATING_COLUMNS, ODDS_COLUMNS


RANDOM_EFFECTS = (
    "Standard deviations in log-odds: how much the levels of each grouping differ. An SD of 0: the data are as likely "
    "without it."
)


def explain_random_effects(frame: pd.DataFrame, model: MixedModel) -> str:
    """Explain the random effects of a model of these responses, and the variance that it explains."""
    return f"{RANDOM_EFFECTS} {explained.describe(frame, model)}".strip()


def explain_figure_1(frame: pd.DataFrame, task: Task) -> str:
    """Explain Figure 1: its intervals where responses are compared within participants, and chance if not one half."""
    shown = FIGURE_1 if task.is_scored else RATED.format(count=task.count)
    crossed = _CROSSED if are_crossed(frame) else ""
    chosen = f" {NOT_COMPARED}" if has_choices(frame) else ""
    return f"{shown}{crossed}{chosen} {task.explain_chance()}".strip()


def explain_table_1(model: MixedModel) -> str:
    """Explain Table 1 with the reference levels of its model."""
    thresholds = " The thresholds are log-odds of a level up to the first that they name." if model.thresholds else ""
    return (
        f"Log-odds with 95% Wald intervals.{thresholds} Reference: {name_references(model)}. * p < .05, ** p < .01, "
        "*** p < .001."
    )


def name_references(model: MixedModel) -> str:
    """Name the reference levels of a model of the paper's design; an absent trial type is none, nor is a factor."""
    named = {
        "trial_type": TYPE_LABELS[model.levels.get("trial_type", TRIAL_TYPES)[0]],
        "saliency": "no saliency map",
        "examples": "no examples",
    }
    return ", ".join(words for factor, words in named.items() if factor in model.formula)


def explain_contrasts(level: float, *, is_scored: bool = True) -> str:
    """Explain the columns of the contrasts; ``level`` is that of their intervals."""
    if not is_scored:
        return (
            "Mean level 1 and 2: of the condition that the contrast names first and second; Levels: their difference. "
            f"The {coverage_text(level)} intervals are uncorrected; p (Holm) is of the odds ratio of a higher level, "
            "corrected for the number of contrasts."
        )
    return (
        "Accuracy 1 and 2: of the condition that the contrast names first and second; % points: their difference. "
        f"The {coverage_text(level)} intervals are uncorrected; p (Holm) is corrected for the number of contrasts."
    )


def explain_estimates(model: str, *, is_scored: bool = True) -> str:
    """Say which model the contrasts are estimated by, and why accuracies differ from the observed ones."""
    means = "accuracies" if is_scored else "mean levels"
    return (
        f"Estimated by the {model} model and averaged over its random effects, so {means} can differ "
        "a little from the observed ones in Figure 1."
    )


def explain_models(random: str, *, is_scored: bool = True) -> str:
    """Explain the table of nested models with these random effects."""
    kind = "Logistic" if is_scored else "Cumulative-logit"
    return (
        f"{kind} mixed models with the random effects {random}, fitted by maximum likelihood (Laplace "
        "approximation). χ², its degrees of freedom and p test each model against the one before; where there is a "
        "denominator df, p is that of F = χ² / df with both degrees of freedom."
    )
