"""What a change did, and a login link: kept for the run that follows, and shown once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import streamlit as st

from core.errors import ForetellError
from dashboard.shared.messages import escape_markdown

SAID, LINK = "members_said", "members_link"
"""In the session: what the last change did, and the last link, each with the place that it belongs to."""
LINK_MADE = "Login link for {account}, for 7 days and one use:"


@contextmanager
def keep_said(place: str, done: str) -> Iterator[list[str]]:
    """Keep what a callback did, or why it did not, for the part of the page that is called ``place``.

    The block may add sentences to what is yielded.
    """
    sentences = [done]
    try:
        yield sentences
        keep_done(place, " ".join(filter(None, sentences)))
    except ForetellError as error:
        st.session_state[SAID] = (place, False, str(error))


def keep_done(place: str, done: str) -> None:
    """Keep what was done for the part of the page that is called ``place``."""
    st.session_state[SAID] = (place, True, done)


def keep_link(place: str, path: str) -> None:
    """Keep the path of a login link."""
    st.session_state[LINK] = (place, path)


def show_said(place: str) -> None:
    """Show what the last change did; a link is shown once."""
    said, link = st.session_state.pop(SAID, None), st.session_state.pop(LINK, None)
    if said is not None and said[0] == place:
        (st.success if said[1] else st.error)(escape_markdown(said[2]))
    if link is not None and link[0] == place:
        parts = urlsplit(st.context.url or "")
        st.code(f"{parts.scheme}://{parts.netloc}{link[1]}" if parts.netloc else link[1], language=None)
        st.caption(
            "Copy it now: it is not shown again. Anyone with this link can log in as this account, so send it to its "
            "owner only."
        )
