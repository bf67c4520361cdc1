"""Columns, headings and captions of the tables that both the page and the report show."""

from __future__ import annotations

import pandas as pd

from study.analysis.models.records import MixedModel
from study.analysis.models.sentences import coverage_text
from study.analysis.responses.periods import are_crossed
from study.bundle import TRIAL_TYPES, TYPE_LABELS

ACCURACY_COLUMNS = ("contrast", "accuracy_more", "accuracy_less", "points", "points_low", "points_high", "p_holm")
"""First what a reader looks for: the conditions in the order of the contrast's name, then their difference."""
LOG_ODDS_COLUMNS = ("contrast", "estimate", "se", "low", "high", "p", "p_holm")
"""In a table of their own: all columns in one do not fit a screen of 1,280 pixels."""
CONTRASTS = {"estimate": "Log-odds"}
MODELS = {"df": "Parameters"}
FIGURE_1 = "Mean accuracy with 95% intervals over participants. The dotted line is chance."
_CROSSED = (
    " Each interval is of one mean. Participants were in several conditions, so that differences are more precise than "
    "the overlap of intervals suggests: the contrasts have the intervals of differences."
)


RANDOM_EFFECTS = (
    "Standard deviations in log-odds: how much the levels of each grouping differ. An SD of 0: the data are as likely "
    "without it."
)


def explain_figure_1(frame: pd.DataFrame) -> str:
    """Explain Figure 1, and its intervals where responses are compared within participants."""
    return FIGURE_1 + (_CROSSED if are_crossed(frame) else "")


def explain_table_1(model: MixedModel) -> str:
    """Explain Table 1 with the reference levels of its model."""
    return (
        f"Log-odds with 95% Wald intervals. Reference: {name_references(model)}. * p < .05, ** p < .01, *** p < .001."
    )


def name_references(model: MixedModel) -> str:
    """Name the reference levels of a model of the paper's design; an absent trial type is none."""
    kind = model.levels.get("trial_type", TRIAL_TYPES)[0]
    return f"{TYPE_LABELS[kind]}, no saliency map, no examples"


def explain_contrasts(level: float) -> str:
    """Explain the columns of the contrasts; ``level`` is that of their intervals."""
    return (
        "Accuracy 1 and 2: of the condition that the contrast names first and second; % points: their difference. "
        f"The {coverage_text(level)} intervals are uncorrected; p (Holm) is corrected for the number of contrasts."
    )


def explain_estimates(model: str) -> str:
    """Say which model the contrasts are estimated by, and why accuracies differ from the observed ones."""
    return (
        f"Estimated by the {model} model and averaged over its random effects, so accuracies "
        "can differ a little from the observed ones in Figure 1."
    )


def explain_models(random: str) -> str:
    """Explain the table of nested models with these random effects."""
    return (
        f"Logistic mixed models with the random effects {random}, fitted by maximum likelihood (Laplace "
        "approximation). χ², its degrees of freedom and p test each model against the one before; where there is a "
        "denominator df, p is that of F = χ² / df with both degrees of freedom."
    )
