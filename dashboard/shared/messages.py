"""Errors as one sentence in a box, and texts from elsewhere that must not be read as markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import streamlit as st

from core.errors import ForetellError
from data.errors import DataError
from study.workspace.workspace import ROOT

_GUIDE = re.compile(r"docs/([\w/-]+)\.md")
_MARKUP = re.compile(r"([\\`*$\[\]<>~|])")
_ADDRESS = re.compile(r"[^\s\\`*$\[\]<>~|@(),;:\"]+@[\w-]+(?:\.[\w-]+)+")


def escape_markdown(text: str) -> str:
    """Escape text so that Markdown shows it as it is, line by line.

    E-mail addresses are shown as code: Markdown would make each a link that opens a mail program.
    """
    return _ADDRESS.sub(r"`\g<0>`", _MARKUP.sub(r"\\\1", text)).replace("\n", "  \n")


def link_guides(text: str) -> str:
    """Link the guides that a text names by their path, as the command line needs it, by their titles."""
    return _GUIDE.sub(lambda named: f"[{_read_title(named[0])}](/docs/{named[1]}.html)", text)


@cache
def _read_title(path: str) -> str:
    """Read the title of a guide; its path where this installation has no guides."""
    file = ROOT / path
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    titles = (line.removeprefix("# ") for line in lines if line.startswith("# "))
    return escape_markdown(next(titles, path))


def format_message(text: str) -> str:
    """Escape a message for a page, and link the guides that it names."""
    return link_guides(escape_markdown(text))


@contextmanager
def show_errors() -> Iterator[None]:
    """Show an error that the user can correct in a box; it ends the block."""
    try:
        yield
    except (ForetellError, DataError) as error:
        st.error(format_message(str(error)))
