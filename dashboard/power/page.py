"""Power: how many participants a study needs, and what they cost."""

from __future__ import annotations

import streamlit as st

from dashboard.power import planning
from dashboard.shared import links, service
from dashboard.shared.messages import escape_markdown, show_errors
from dashboard.studies.workspace_studies import list_studies
from study.collection.access.permissions import Permission
from study.workspace.workspace import home


def page() -> None:
    """Draw the page."""
    st.title("Power", anchor=False)
    st.caption(
        "Simulated studies, analysed as planned. Power is only as good as the assumed effects: check half the effect "
        "as well."
    )
    with show_errors():
        researcher = service.get_acting_researcher()
        by_name = {study.name: study for study in list_studies(home(), researcher) if study.settings is not None}
        studies = {name: study for name, study in by_name.items() if researcher.may(Permission.DESIGN, name)}
        if not studies:
            st.info("There is no study file yet.")
            links.show_link("Design a study", "design")
            return
        if st.query_params.get("study", next(iter(studies))) not in studies:
            st.error(
                f"There is no study file {escape_markdown(st.query_params['study'])}. Choose one of the studies below."
            )
        study = studies[st.selectbox("Study", list(studies), key="study", bind="query-params", width=420)]
        question = planning.choose_analysis(study)
        if question is not None:
            planning.show(question)
