"""Every study with its state and what comes next in it."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from dashboard.shared import service
from dashboard.shared.messages import escape_markdown
from dashboard.studies.workspace_studies import COLOURS, Study, count_finished, find_next_action, list_studies
from study.workspace.workspace import home


def show(linked: Mapping[str, StreamlitPage]) -> None:
    """Draw the list; ``linked`` are all pages by name."""
    st.subheader("Your studies", anchor=False)
    for study in list_studies(home(), service.get_service()):
        action = find_next_action(study)
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            with st.container(width="stretch", gap=None):
                st.markdown(f"**{escape_markdown(study.name)}** :{COLOURS[study.state]}-badge[{study.state}]")
                st.caption(escape_markdown(" · ".join(filter(None, [study.title, _count(study)]))))
                for fault in study.faults:
                    st.markdown(f":red[{escape_markdown(fault)}]")
            st.page_link(
                linked[action.page],
                label=f":primary[**{action.label}**]",
                icon=":material/arrow_forward:",
                icon_position="right",
                query_params=action.query,
            )


def _count(study: Study) -> str:
    """Count who completed a study, with simulated participants named as such."""
    if not study.versions:
        return ""
    done, simulated = count_finished(study.versions, "live"), count_finished(study.versions, "sim")
    text = f"{done:,} participant{'s' if done != 1 else ''} completed it"
    return text + (f" · {simulated:,} simulated (not evidence)" if simulated else "")
