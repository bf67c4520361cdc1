"""Report parts of a link that name something that does not exist, instead of replacing them silently."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import streamlit as st

from core.errors import ForetellError
from dashboard.shared.messages import escape_markdown

Read = TypeVar("Read")

_UNKNOWN = "link_unknown"
"""In the session: of each faulty parameter the sentence, and the value that the page took instead."""


def check(key: str, options: Iterable[Any], what: str) -> None:
    """Note a value of the link that is not among a widget's options; call it before the widget is drawn.

    A widget bound to the query parameter ``key`` falls back to its default without a message.
    """
    given, known = st.query_params.get_all(key), {str(option) for option in options}
    for value in given:
        if value not in known:
            note(key, f"The link names the {what} “{value}”, which does not exist here.")


def note(key: str, sentence: str) -> None:
    """Keep a sentence about a part of the link until the reader changes that part."""
    st.session_state.setdefault(_UNKNOWN, {})[key] = (sentence, None)


def text_input(label: str, default: str, *, key: str, **options: Any) -> str:
    """Draw a text field that starts with the link's value; `accept` keeps the link at what it says.

    A widget bound to the link writes every value there, also one that ends in an error message.
    """
    if key not in st.session_state:
        st.session_state[key] = st.query_params.get(key, default)
    text: str = st.text_input(label, key=key, **options)
    return text


def accept(key: str, text: str, default: str, read: Callable[[str], Read]) -> Read:
    """Read the value of a `text_input`, and write it to the link.

    Raises
    ------
    ForetellError
        From `read`; what it refused is not in the link, nor what the link brought.
    """
    try:
        value = read(text)
    except ForetellError:
        if st.query_params.get(key) == text:
            del st.query_params[key]
        raise
    if text != st.query_params.get(key, default):
        st.query_params[key] = text
    return value


def show() -> None:
    """Draw what was noted, as long as the page still shows what it took instead."""
    noted: dict[str, tuple[str, Any]] = st.session_state.get(_UNKNOWN, {})
    for key, (sentence, before) in list(noted.items()):
        now = str(st.session_state.get(key))
        if before is not None and now != before:
            del noted[key]
            continue
        noted[key] = (sentence, now)
        st.warning(escape_markdown(f"{sentence} Another one is shown instead."))
