"""Home: what Foretell does, the pages in the order of a study, and what comes next in each study."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from dashboard.shared import demo, service
from dashboard.shared.messages import show_errors
from study.collection.access.permissions import Permission
from study.demo import NAME as DEMO
from study.workspace.jinja import load_templates
from study.workspace.workspace import home

HERE = Path(__file__).parent


def page(linked: Mapping[str, StreamlitPage], steps: Mapping[str, tuple[str, str]]) -> None:
    """Draw the page; ``linked`` are all pages by name, ``steps`` the heading and the sentence of those in the cards.

    What needs no network and no study file comes first: reading study files imports torch.
    """
    st.title("Do explanations help people predict an AI?", anchor=False)
    st.html(_draw_overview())
    with show_errors():
        if service.get_acting_researcher().may(Permission.PREVIEW, DEMO):
            demo.show_progress(_offer_demo)
    st.space("small")
    grid = st.grid(len(steps), min_column_width=170)
    for number, (name, (heading, text)) in enumerate(steps.items()):
        with grid.container(border=True, key=f"step_{name}", height="stretch"):
            st.page_link(linked[name], label=f"**{number}. {heading}**", icon=linked[name].icon)
            st.caption(text)
    st.space("small")
    with show_errors():
        from dashboard.home import studies

        studies.show(linked)
    st.caption(f"Everything you create is in the workspace, the folder `{home()}`.")


@st.cache_data(show_spinner=False)
def _draw_overview() -> str:
    images = {
        name: "data:image/webp;base64," + base64.b64encode((HERE / f"{name}.webp").read_bytes()).decode()
        for name in ("image", "heatmap")
    }
    return load_templates(HERE).get_template("overview.html").render(images)


def _offer_demo() -> None:
    """Show the demo study as participants see it, in the condition with the most explanations."""
    statuses = service.get_acting_researcher().studies()
    opened = next((status for status in statuses if status.name == DEMO and status.state == "open"), None)
    if opened is None:
        if demo.find_job() is None:
            st.markdown(
                "To try a study as a participant, build and open the study `demo` on the Studies page, or start "
                "Foretell with `python foretell.py`, which does both."
            )
        return
    conditions = sorted(opened.slots.get("live", {}))
    condition = "both" if "both" in conditions else conditions[-1]
    st.link_button(
        "Try it as a participant (4 min)",
        f"/run/{quote(DEMO)}?preview={quote(condition)}",
        icon=":material/play_arrow:",
        type="primary",
        help="Opens in a new tab. A preview is not data and uses no quota.",
    )
