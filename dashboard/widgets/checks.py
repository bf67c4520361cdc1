"""Whether the models should be believed: how the search ended, and the same by other roads."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import analysiswork
from dashboard.analysiswork import Analysed
from dashboard.widgets import live, numbers
from study.analysis import report
from study.analysis.crosschecks import EXPLANATIONS


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
    live.shown(analysiswork.checked(found), _side_by_side, "checks")


def _side_by_side(table: pd.DataFrame) -> None:
    numbers.table(table.assign(term=table["term"].map(report.words)), "crosschecks")
    for explanation in EXPLANATIONS.values():
        st.caption(explanation)
