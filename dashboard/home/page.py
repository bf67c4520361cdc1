"""Home: what Foretell does, with links to its pages."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from dashboard.shared import service
from study.workspace.workspace import bundles, home


def page(cards: Mapping[StreamlitPage, tuple[str, str]]) -> None:
    """Draw the page; ``cards`` are the pages to go to, each with a heading and a sentence."""
    st.title("Do explanations help people predict an AI?", anchor=False)
    st.markdown(
        "Foretell explains an image classifier, shows the explanations to participants in a browser experiment, "
        "and fits the mixed models that test whether they helped."
    )
    st.space("small")
    grid = st.grid(3, min_column_width=260)
    for linked, (heading, text) in cards.items():
        with grid.container(border=True):
            st.subheader(heading, anchor=False)
            st.markdown(text)
            st.page_link(linked, label=f":primary[**{linked.title}**]", icon=linked.icon)
    st.space("small")
    _workspace()


def _workspace() -> None:
    """Show what the workspace contains, with simulated participants counted separately."""
    folder = home()
    statuses = service.get_service().researcher.studies()
    done = dict.fromkeys(("live", "sim"), 0)
    for status in statuses:
        for mode in done:
            done[mode] += sum(stages.get("done", 0) for stages in status.sessions.get(mode, {}).values())
    st.subheader("Your workspace", anchor=False)
    numbers = {
        "Studies built": len({path.name.rpartition("-")[0] for path in bundles(folder)}),
        "Open now": sum(status.state == "open" for status in statuses),
        "Participants": done["live"],
        "Simulated participants": done["sim"],
    }
    grid = st.grid(4, min_column_width=150)
    for label, number in numbers.items():
        grid.metric(label, f"{number:,}", border=True)
    if done["sim"]:
        st.caption("Simulated participants are for testing and planning a study; their responses are not evidence.")
    st.caption(f"Folder: `{folder}`")
