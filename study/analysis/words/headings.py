"""The headings of tables in words, by the names that their columns have in exported files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from core.names import format_name

INTERIM = "planned analysis, interim data"
"""Label of results before the collection is complete."""
DETECTION_MEASURES = ("dprime", "criterion")
"""The measures of signal detection, whose names are headings and values."""
METACOGNITION_MEASURES = ("auc2", "meta_d", "efficiency")
"""Those of metacognition: the type 2 AUC, meta-d' and its ratio to d'."""
DIFFUSION_MEASURES = ("drift", "boundary", "nondecision_s")
"""The parameters of the diffusion model."""
EX_GAUSSIAN_MEASURES = ("mu_s", "sigma_s", "tau_s")
"""The parameters of the ex-Gaussian distribution."""
MEASURES = (*DETECTION_MEASURES, *METACOGNITION_MEASURES, *DIFFUSION_MEASURES, *EX_GAUSSIAN_MEASURES)
"""The measures that are headings of one table and values of another."""
HEADINGS: Mapping[str, str] = {
    # estimates and tests
    "se": "SE",
    "sd": "SD",
    "z": "z",
    "t": "t",
    "p": "p",
    "p_value": "p",
    "p_holm": "p (Holm)",
    "p_tukey": "p (Tukey)",
    "p_mvt": "p (max t)",
    "p_equivalence": "p (TOST)",
    "p_equivalence_holm": "p (TOST, Holm)",
    "p_difference": "p (difference)",
    "p_above": "P(above 0)",
    "p_within": "P(within)",
    "rhat": "R-hat",
    "ess_bulk": "Effective draws",
    "ess_tail": "Effective draws (limits)",
    "log_p": "log p",
    "p_like": "p (like relatives)",
    "df": "df",
    "df2": "Denominator df",
    "chisq": "χ²",
    "chisq_df": "df",
    "p_bootstrap": "p (bootstrap)",
    "drawn": "Mean of draws",
    "drawn_from": "95% of draws from",
    "drawn_to": "to",
    "rho": "Spearman's ρ",
    "loglik": "Log-likelihood",
    "aic": "AIC",
    "bic": "BIC",
    "log_odds": "Log-odds",
    "dprime": "Sensitivity d'",
    "criterion": "Criterion c",
    "drift": "Drift rate",
    "nondecision_s": "Non-decision time (s)",
    "mu_s": "Mu (s)",
    "sigma_s": "Sigma (s)",
    "tau_s": "Tau (s)",
    "auc2": "Type 2 AUC",
    "meta_d": "meta-d'",
    "efficiency": "meta-d' / d'",
    "mixed": "Mixed model",
    "bayes": "Bayesian",
    "gee": "GEE",
    "gee_rescaled": "GEE, rescaled",
    "auc": "AUC",
    "gini": "Gini coefficient",
    "p5": "5th percentile",
    "p95": "95th percentile",
    "q50": "Median",
    # participants and conditions
    "people": "Participants",
    "between": "Group",
    "level_less": "Mean level 2",
    "level_more": "Mean level 1",
    "level_difference": "Levels",
    "accuracy_less": "Accuracy 2",
    "accuracy_more": "Accuracy 1",
    "points": "% points",
    "points_all": "% points (all)",
    "points_without": "% points (without)",
    "shift": "Shift (% points)",
    "p_all": "p (all)",
    "p_without": "p (without)",
    "ai_right": "AI right",
    "ai_wrong": "AI wrong",
    "ai_probability": "AI's confidence",
    "p_learner": "Learner's probability",
    "p_prior": "Prior probability",
    "n_training": "Training images",
    "previous_condition": "Condition before",
    "per_condition": "Participants per condition",
    # images, layers and units
    "id": "ID",
    "x": "x",
    "y": "y",
    "of": "Property",
    "mass": "Relevance mass",
    "other": "Compared layer",
    "other_kept": "Kept of the compared layer",
    "x_feature": "x-feature",
    "o1": "Correlation (norm)",
    "o2": "Correlation (log determinant)",
    "explained_class": "Explained for the class",
    "lost_random": "Lost by random filters",
    "training_true": "Training, true class",
    "label_error": "Label error",
    "rather": "More likely class",
    "features_label_error": "Label error (features)",
    "features_rather": "More likely class (features)",
    "features_margin": "Margin (features)",
    "instability_channel": "Instability of the channel",
    "instability_fixed": "Instability of a fixed place",
    "instability_maximum": "Instability of the maximum",
    "purity_channel": "Purity of the channel",
}
"""Those of columns whose names do not read well as words; `format_heading` derives all others."""
FORMS: Mapping[str, str] = {
    r"(?:.+_)?low": "{coverage} CI from",
    r"(?:.+_)?high": "to",
    r".+_(?:se|error)": "SE",
    r".+_sd": "SD",
    r"q(\d+)": "{0}th percentile",
    r"do_(.+)": "{0}, effect",
    r"bf01_(.+)": "BF₀₁, prior SD {0}",
    r"(.+)_less": "{0}, difference",
}
"""Headings by the form of a name: limits and errors follow the column that they belong to."""
SHARES = ("accuracy", "accuracy_more", "accuracy_less", "power", "proportion", "p_above", "p_within")
"""Columns that are written in percent, as in the sentences."""
SHARES_BESIDE = {
    "accuracy": ("low", "high", "chance"),
    "power": ("low", "high"),
    "proportion": ("low", "high"),
    "ai_right": ("index", "low", "high", "ai_right", "ai_wrong"),
    "cell": ("people", "theory"),
}
"""Columns that are written in percent in tables with the column that is named first."""


def is_share(name: str, columns: Iterable[str]) -> bool:
    """Whether a column of a table with these columns is in percent: accuracy, power, their limits, or chance."""
    return name in SHARES or any(name in SHARES_BESIDE.get(column, ()) for column in columns)


def format_heading(name: str, coverage: str = "95%") -> str:
    """Format a column's name as a heading: ``"chisq"`` -> ``"χ²"``; ``coverage`` is that of its intervals."""
    if name in HEADINGS:
        return HEADINGS[name]
    for form, heading in FORMS.items():
        if match := re.fullmatch(form, name):
            return heading.format(*map(format_name, match.groups()), coverage=coverage)
    return format_name(name)


def format_headings(
    names: Iterable[str], own: Mapping[str, str] | None = None, coverage: str = "95%"
) -> dict[str, str]:
    """Format a table's headings by column; ``own`` are those of this table alone."""
    return {name: (own or {}).get(name) or format_heading(name, coverage) for name in names}
