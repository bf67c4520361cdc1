"""Whether the models should be believed: how the search ended, and the same by other roads."""

from __future__ import annotations

import streamlit as st

from dashboard.widgets import live, numbers
from dashboard.work import analysis as work
from dashboard.work.analysis import Analysed
from study.analysis import crosschecks, exploratory
from study.analysis.exploratory import Measure


def show(found: Analysed) -> None:
    """Convergence in words; Bayesian and GEE beside the mixed model, and why they differ."""
    numbers.heading("Did the search arrive?", found.label)
    for name, model in found.analysis.models.items():
        for message in model.messages:
            st.warning(f"Model {name}: {message}")
        if not model.messages:
            st.success(
                f"Model {name}: at the top of its likelihood ({model.loglik:,.3f}), and nothing speaks against it."
            )
    numbers.heading("The same by other roads", "exploratory")
    offer = exploratory.other_roads(found.data.frame, found.model)
    live.shown(work.measured(found, offer), _side_by_side, "checks")
    for explanation in crosschecks.explanations(len(found.data.frame)):
        st.caption(explanation)


def _side_by_side(measure: Measure) -> None:
    numbers.table(measure.table, f"exploratory_{measure.name}")
