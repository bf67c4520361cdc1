"""The chooser of a page's section, which is part of its link."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from dashboard.shared import links


def choose_section(what: str, sections: Iterable[str], key: str) -> str:
    """Draw the choice of a section, as tabs (style.css), and return it: the first, or that of the link.

    An unknown one is said.
    """
    names = list(sections)
    links.check(key, names, what.lower())
    with st.container(key=f"tabs_{key}", width="content"):
        chosen: str = st.segmented_control(
            what, names, default=names[0], required=True, key=key, bind="query-params", label_visibility="collapsed",
            wrap=True,
        )  # fmt: skip
    return chosen
