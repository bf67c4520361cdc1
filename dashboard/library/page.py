"""Models & images: what is in the workspace, and what is added to it."""

from __future__ import annotations

import streamlit as st

from dashboard.library import images, models
from dashboard.shared import links
from dashboard.shared.messages import show_errors
from dashboard.shared.sections import choose_section

PARTS = {"Images": images.show, "Networks": models.show}


def page() -> None:
    """Draw the page."""
    st.title("Models & images", anchor=False)
    st.caption(
        "Your own networks and images, kept in the workspace on this machine. Explore and studies use them. Only "
        "researchers who are logged in see this page."
    )
    part = choose_section("Part", PARTS, "part")
    links.show()
    with show_errors():
        PARTS[part]()
