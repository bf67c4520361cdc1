"""Downloads."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st


def offer_download(label: str, content: Callable[[], bytes | str], name: str, mime: str) -> None:
    """Offer a download; its content is made on request."""
    st.download_button(label, content, name, mime, on_click="ignore", type="tertiary", icon=":material/download:")
