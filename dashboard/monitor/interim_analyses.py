"""The looks that a study's plan declares: which are made, and the button that makes the one that is due."""

from __future__ import annotations

import streamlit as st

from dashboard.shared import service
from dashboard.shared.messages import show_errors

BOUND = st.column_config.NumberColumn("Bound on |z|", format="%.3f")


def show(study: str) -> None:
    """Nothing where the plan declares no looks."""
    standing = service.get_service().researcher.load_interim_status(study)
    if standing is None:
        return
    st.subheader("Planned looks", anchor=False)
    st.caption(
        "Declared in the study file before the data. A look says whether its bound is crossed and nothing else; beyond "
        "the bound, and at the last look, it closes the collection. What was seen goes into the audit trail."
    )
    table = standing.schedule.rename(columns=str.capitalize).rename(columns={"Participants": "People per condition"})
    st.dataframe(table, hide_index=True, key="monitor_looks", column_config={"Bound": BOUND})
    st.caption(f"{standing.finished} people finished in the smallest condition.")
    with show_errors():
        due = standing.due is not None
        label = f"Make look {standing.due}" if due else "No look is due"
        if st.button(label, type="primary", disabled=not due, key="monitor_look"):
            with st.spinner("Fitting the planned model …"):
                service.get_acting_researcher().run_interim_analysis(study)
            st.rerun()
