"""Whether the models can be trusted: convergence, random slopes, and robustness checks."""

from __future__ import annotations

import streamlit as st

from dashboard.results import jobs as work
from dashboard.results.jobs import SEED, AnalysisResult
from dashboard.shared import live, numbers
from study.analysis import crosschecks
from study.analysis.exploratory import EXPLORATORY, AnalysedStudy, ExploratoryResult


def show(result: AnalysisResult) -> None:
    """Show convergence, the result with random slopes, and Bayesian and GEE fits with why they differ."""
    numbers.heading("Convergence", result.label)
    for name, model in result.analysis.models.items():
        for message in model.messages:
            st.warning(f"Model {name}: {message}")
        if not model.messages:
            st.success(
                f"Model {name}: converged to the maximum of the likelihood ({model.loglik:,.3f}). No warnings. "
                "Convergence does not show that the model describes the data; that is what the tests are for."
            )
    study = AnalysedStudy(result.data, SEED, None, result.analysis, result.plan)
    slopes, robustness = EXPLORATORY["slopes"], EXPLORATORY["crosschecks"]
    numbers.heading(slopes.title, "exploratory")
    st.caption(slopes.explain(study))
    live.draw_when_ready(work.make_measure_task(result, "slopes"), _table, "slopes")
    numbers.heading(robustness.title, "exploratory")
    live.draw_when_ready(work.make_measure_task(result, "crosschecks"), _table, "checks")
    for explanation in crosschecks.explanations(len(result.data.frame)):
        st.caption(explanation)


def _table(measure: ExploratoryResult) -> None:
    numbers.table(measure.table, f"exploratory_{measure.name}")
