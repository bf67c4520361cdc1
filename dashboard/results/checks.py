"""Whether the models can be trusted: convergence, random slopes, and robustness checks."""

from __future__ import annotations

import streamlit as st

from dashboard.results import jobs as work
from dashboard.results.jobs import AnalysisResult
from dashboard.shared import live, numbers
from study.analysis import crosschecks, exploratory, slopes
from study.analysis.exploratory import Measure


def show(found: AnalysisResult) -> None:
    """Show convergence, the result with random slopes, and Bayesian and GEE fits with why they differ."""
    numbers.heading("Convergence", found.label)
    for name, model in found.analysis.models.items():
        for message in model.messages:
            st.warning(f"Model {name}: {message}")
        if not model.messages:
            st.success(
                f"Model {name}: converged to the maximum of the likelihood ({model.loglik:,.3f}). No warnings. "
                "Convergence does not show that the model describes the data; that is what the tests are for."
            )
    numbers.heading(slopes.TITLE, "exploratory")
    compared = exploratory.with_slopes(found.data, found.analysis, found.plan)
    st.caption(compared.says)
    live.draw_when_ready(work.make_measure_task(found, compared), _table, "slopes")
    numbers.heading("Robustness checks: GEE and Bayesian fits", "exploratory")
    offer = exploratory.offer_robustness_checks(found.data.frame, found.model)
    live.draw_when_ready(work.make_measure_task(found, offer), _table, "checks")
    for explanation in crosschecks.explanations(len(found.data.frame)):
        st.caption(explanation)


def _table(measure: Measure) -> None:
    numbers.table(measure.table, f"exploratory_{measure.name}")
