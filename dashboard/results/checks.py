"""Whether the models can be trusted: convergence, random slopes, and robustness checks."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from dashboard.results import jobs as work
from dashboard.results.findings import list_model_messages
from dashboard.results.jobs import AnalysisResult
from dashboard.shared import live, numbers
from dashboard.shared.messages import escape_markdown
from study.analysis.exploratory import crosschecks, slopes
from study.analysis.exploratory.analysis import EXPLORATORY, ExploratoryResult, explain_unscored
from study.analysis.models.records import MixedModel
from study.analysis.models.sentences import coverage_text
from study.analysis.words.wording import IN_WORDS

SLOPE_WORDS: numbers.Words = {
    **IN_WORDS,
    "random_effects": lambda random: "intercepts only" if slopes.has_intercepts_only(random) else "with slopes",
}


def show(result: AnalysisResult) -> None:
    """Show convergence, the result with random slopes, and Bayesian and GEE fits with why they differ."""
    numbers.heading("Convergence", result.label)
    _show_convergence(result.analysis.models)
    if unscored := explain_unscored(result.data.task):
        st.info(f"{unscored} Whether the odds are proportional is under Exploratory.")
        return
    study = work.make_study(result)
    compared, robustness = EXPLORATORY["slopes"], EXPLORATORY["crosschecks"]
    numbers.heading(compared.title, "exploratory")
    st.caption(compared.explain(study))
    coverage = coverage_text(result.level)
    live.draw_when_ready(work.make_measure_task(result, "slopes"), lambda made: _show_slopes(made, coverage), "slopes")
    numbers.heading(robustness.title, "exploratory")
    live.draw_when_ready(work.make_measure_task(result, "crosschecks"), _table, "checks")
    for explanation in crosschecks.explanations(len(result.data.frame)):
        st.caption(explanation)


def _show_convergence(models: Mapping[str, MixedModel]) -> None:
    """Show the models without warnings in one box, and each other model in its own."""
    for name, model in models.items():
        if model.messages:
            st.warning("\n\n".join(list_model_messages(name, model)))
    sound = {name: model.loglik for name, model in models.items() if not model.messages}
    if sound:
        st.success(
            f"{_name_models(sound)} converged to the maximum of the likelihood. No warnings. Convergence does not "
            "show that a model describes the data: compare with random slopes and with the robustness checks below."
        )


def _name_models(likelihoods: Mapping[str, float]) -> str:
    """Name models with their log-likelihoods: ``"The models null (log-likelihood −91.661) and both (−87.650)"``."""
    values = [f"{value:,.3f}".replace("-", "−") for value in likelihoods.values()]
    values[0] = f"log-likelihood {values[0]}"
    named = [f"{name} ({value})" for name, value in zip(likelihoods, values, strict=True)]
    if len(named) == 1:
        return f"The model {named[0]}"
    return f"The models {', '.join(named[:-1])} and {named[-1]}"


def _show_slopes(measure: ExploratoryResult, coverage: str) -> None:
    """Show tests and contrasts in two tables: all columns in one do not fit a screen of 1,280 pixels."""
    table = measure.table
    is_contrast = table["points"].notna() | table["p_holm"].notna()
    for part, name, columns in (
        (table[~is_contrast], "slopes_tests", slopes.TEST_COLUMNS),
        (table[is_contrast], "slopes_contrasts", slopes.CONTRAST_COLUMNS),
    ):
        if not part.empty:
            numbers.table(part[list(columns)], name, SLOPE_WORDS, coverage=coverage)
    formulas = [random for random in dict.fromkeys(table["random_effects"]) if not slopes.has_intercepts_only(random)]
    st.caption(escape_markdown(f"With slopes: {'; '.join(formulas)}." if formulas else "No slopes are left."))


def _table(measure: ExploratoryResult) -> None:
    numbers.table(measure.table, f"exploratory_{measure.name}", IN_WORDS)
