"""Errors as one sentence in a box, and texts from elsewhere that must not be read as markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from core.errors import ForetellError
from data.errors import DataError

_MARKUP = re.compile(r"([\\`*$\[\]<>~|])")


def escape_markdown(text: str) -> str:
    """Escape text so that Markdown shows it as it is, line by line."""
    return _MARKUP.sub(r"\\\1", text).replace("\n", "  \n")


@contextmanager
def show_errors() -> Iterator[None]:
    """Show an error that the user can correct in a box; it ends the block."""
    try:
        yield
    except (ForetellError, DataError) as error:
        st.error(escape_markdown(str(error)))
