"""Teaching: which examples a study shows with a picture, why these, and what a learner makes of them."""

from __future__ import annotations

import streamlit as st

from dashboard.shared import service
from dashboard.shared.messages import errors_shown, escaped
from dashboard.studies import building
from dashboard.studies.workspace_studies import shelf
from dashboard.teaching import lesson
from study.workspace.workspace import home


def page() -> None:
    """The whole page."""
    st.title("Teaching", anchor=False)
    st.caption(
        "Examples are chosen so that a learner who sees them infers what the AI says. Look at one trial's lesson."
    )
    with errors_shown():
        studies = {study.name: study for study in shelf(home(), service.service())}
        if not studies:
            st.info("No study is here yet. Put a study file into the folder `studies` of the workspace.")
            return
        if st.query_params.get("study", next(iter(studies))) not in studies:
            st.error(f"There is no study {escaped(st.query_params['study'])}. Choose one of those below.")
        left, right = st.columns(2)
        with left:
            study = studies[st.selectbox("Study", list(studies), key="study", bind="query-params")]
        for fault in study.faults:
            st.error(escaped(fault))
        if study.bundle is None:
            building.show(study)
            return
        with right:
            trial = lesson.chosen_trial(study.bundle)
        lesson.show(study.bundle, trial)
        with st.expander("Build", expanded=study.changed):
            building.show(study)
