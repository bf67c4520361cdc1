"""Whether the models can be trusted: convergence, random slopes, and robustness checks."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from dashboard.results import jobs as work
from dashboard.results.findings import list_model_messages
from dashboard.results.jobs import SEED, AnalysisResult
from dashboard.shared import live, numbers
from study.analysis import crosschecks, headline
from study.analysis.exploratory import EXPLORATORY, AnalysedStudy, ExploratoryResult
from study.analysis.records import MixedModel
from study.analysis.wording import IN_WORDS


def show(result: AnalysisResult) -> None:
    """Show convergence, the result with random slopes, and Bayesian and GEE fits with why they differ."""
    numbers.heading("Convergence", result.label)
    _show_convergence(result.analysis.models)
    study = AnalysedStudy(result.data, SEED, None, result.analysis, result.plan)
    slopes, robustness = EXPLORATORY["slopes"], EXPLORATORY["crosschecks"]
    numbers.heading(slopes.title, "exploratory")
    st.caption(slopes.explain(study))
    coverage = headline.coverage_text(result.level)
    live.draw_when_ready(work.make_measure_task(result, "slopes"), lambda made: _table(made, coverage), "slopes")
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


def _table(measure: ExploratoryResult, coverage: str = "95%") -> None:
    numbers.table(measure.table, f"exploratory_{measure.name}", IN_WORDS, coverage=coverage)
