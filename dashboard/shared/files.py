"""Files to take away."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st


def offer_download(label: str, content: Callable[[], bytes | str], name: str, mime: str) -> None:
    """A file to download; its content is made when it is asked for."""
    st.download_button(label, content, name, mime, on_click="ignore", type="tertiary", icon=":material/download:")
