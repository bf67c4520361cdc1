"""Every study with its state and what comes next in it."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from dashboard.shared import demo, service
from dashboard.shared.messages import escape_markdown
from dashboard.studies.workspace_studies import (
    COLOURS,
    NextAction,
    Study,
    count_finished,
    find_next_action,
    list_studies,
)
from study.collection.access.permissions import Permission
from study.collection.researcher import Researcher
from study.demo import NAME
from study.workspace.workspace import home

NEEDED = {"studies": Permission.DESIGN, "results": Permission.SEE_OUTCOMES}
"""The permission that the next action on a page needs."""


def show(linked: Mapping[str, StreamlitPage]) -> None:
    """Draw the list, the workspace's own studies before the examples; ``linked`` are all pages by name."""
    researcher = service.get_acting_researcher()
    studies = list_studies(home(), researcher)
    st.header("Your studies", anchor=False)
    own = [study for study in studies if not study.is_example]
    for study in own:
        _show_study(study, _find_action(researcher, study), linked)
    if not own:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption("None yet.", width="content")
            st.page_link(
                linked["design"],
                label=":primary[**Design a study**]",
                icon=":material/arrow_forward:",
                icon_position="right",
            )
    if len(own) < len(studies):
        st.header("Examples", anchor=False)
    for study in studies:
        if study.is_example:
            _show_study(study, _find_action(researcher, study), linked)


def _show_study(study: Study, action: NextAction | None, linked: Mapping[str, StreamlitPage]) -> None:
    """Draw a study with its state, its faults and the link to what comes next."""
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        with st.container(width="stretch", gap=None):
            st.markdown(f"**{escape_markdown(study.name)}** :{COLOURS[study.state]}-badge[{study.state}]")
            st.caption(escape_markdown(" · ".join(filter(None, [study.subject, _count(study)]))))
            for fault in study.faults:
                st.markdown(f":red[{escape_markdown(fault)}]")
        if action is not None:
            st.page_link(
                linked[action.page],
                label=f":primary[**{action.label}**]",
                icon=":material/arrow_forward:",
                icon_position="right",
                query_params=action.query,
            )


def _find_action(researcher: Researcher, study: Study) -> NextAction | None:
    """Return what comes next for a study as far as the account may do it; else the Monitor, once it was opened."""
    job = demo.find_job() if study.name == NAME else None
    if job is not None and not job.has_ended:
        return NextAction("Follow it", "studies", {"study": study.name})
    action = find_next_action(study)
    if action.page == "monitor" or researcher.may(NEEDED[action.page], study.name):
        return action
    return NextAction("Monitor it", "monitor", {"study": study.name}) if study.last_version else None


def _count(study: Study) -> str:
    """Count who completed a study, with simulated participants named as such."""
    if not study.versions:
        return ""
    done, simulated = count_finished(study.versions, "live"), count_finished(study.versions, "sim")
    text = f"{done:,} participant{'s' if done != 1 else ''} completed it"
    return text + (f" · {simulated:,} simulated (not evidence)" if simulated else "")
