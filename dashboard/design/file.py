"""The study file itself: shown with every choice, and edited by hand."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from dashboard.design.editor import Editor, replace_text
from dashboard.shared import files
from dashboard.shared.messages import escape_markdown
from study.workspace.faults import Fault

LINES = 24
"""Height of the editor, in lines, at least."""


def show_file(editor: Editor) -> None:
    """Draw the file to edit by hand."""
    show_text(editor.path)


def show_text(path: Path) -> None:
    """Draw the text of a study file, which need not be valid, with buttons to save and to download it."""
    text = path.read_text(encoding="utf-8", errors="replace")
    key = f"design.text.{path.stem}.{hash(text)}"  # a file that changed is shown as it is now
    st.caption(escape_markdown(f"{path}. Every other section of this page keeps the comments."))
    lines = max(LINES, text.count("\n") + 2)
    with st.container(key="design_file_text"):  # in a font of code: comments are aligned
        edited = st.text_area("Study file", text, key=key, height=21 * lines, label_visibility="collapsed")
    with st.container(horizontal=True):
        st.button("Save", type="primary", key=f"{key}.save", on_click=replace_text, args=(path, edited))
        files.offer_download("Download", lambda: text.encode(), path.name, "application/toml")


def show_code(editor: Editor) -> None:
    """Draw the file as it is now, closed until it is opened."""
    with st.expander(f"Study file: {editor.path.name}"):
        st.code(editor.draft.text, language="toml", line_numbers=True)


def list_faults(faults: list[Fault]) -> str:
    """Return the faults of a file as a list."""
    return "\n".join(f"- {escape_markdown(str(fault))}" for fault in faults)
