"""The planned interim analyses of a study: which are done, and the button that runs the one that is due."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard.shared import service
from dashboard.shared.messages import show_errors
from study.collection.access.permissions import Permission

SCHEDULE: dict[str, Any] = {
    "look": "Analysis",
    "participants": "Participants per condition",
    "bound": st.column_config.NumberColumn("Bound on |z|", format="%.3f"),
    "verdict": "Result",
}
"""The columns of the table of planned analyses, in the words of the page."""


def show(study: str) -> None:
    """Show the interim analyses, if the plan declares any."""
    standing = service.get_acting_researcher().load_interim_status(study)
    if standing is None:
        return
    st.header("Planned interim analyses", anchor=False)
    st.caption(
        "Planned in the study file and frozen with it. An interim analysis reports only whether its bound is crossed. "
        "If it is, and after the last analysis, the collection closes. The audit trail records the result."
    )
    st.dataframe(standing.schedule, hide_index=True, key="monitor_looks", column_config=SCHEDULE)
    st.caption(f"Completed participants in the smallest condition: {standing.finished}.")
    with show_errors():
        refusal = service.get_acting_researcher().explain_refusal(Permission.SEE_OUTCOMES, study)
        due = standing.due is not None and refusal is None
        label = f"Run interim analysis {standing.due}" if standing.due is not None else "No interim analysis is due"
        if st.button(label, type="primary", disabled=not due, key="monitor_look", help=refusal):
            with st.spinner("Fitting the planned model …"):
                service.get_acting_researcher().run_interim_analysis(study)
            st.rerun()
