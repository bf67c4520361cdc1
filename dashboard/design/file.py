"""The study file itself: shown with every choice, and edited by hand."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from core.text import decode_text
from dashboard.design.editor import Editor, UnsavedText, drop_unsaved, find_unsaved, keep_unsaved, replace_text
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
    text = decode_text(path.read_bytes(), errors="replace")
    unsaved = find_unsaved(path)
    key = f"design.text.{path.stem}.{hash(text)}"  # a file that changed is shown as it is now
    st.session_state.setdefault(key, text if unsaved is None else unsaved.text)
    st.caption(escape_markdown(f"{path}. Changes in the other sections keep your comments."))
    if unsaved is not None and unsaved.refusal:
        st.error(escape_markdown(f"Not saved: {unsaved.refusal}"))
    lines = max(LINES, text.count("\n") + 2)
    with st.container(key="design_file_text"):  # in a font of code: comments are aligned
        st.text_area(
            "Study file", key=key, height=21 * lines, label_visibility="collapsed",
            on_change=_keep_typed, args=(path, key, text),
        )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Save", type="primary", key=f"{key}.save", on_click=_save, args=(path, key))
        if unsaved is not None:
            st.button("Discard", key=f"{key}.discard", on_click=_discard, args=(path, key, text))
            st.markdown(":orange[:material/edit: This text is not saved yet.]", width="content")
        files.offer_download("Download", lambda: text.encode(), path.name, "application/toml")


def _keep_typed(path: Path, key: str, saved: str) -> None:
    """Keep what was typed, unless it is what the file says."""
    typed = st.session_state[key]
    if typed == saved:
        drop_unsaved(path)
    else:
        keep_unsaved(path, UnsavedText(typed))


def _save(path: Path, key: str) -> None:
    replace_text(path, st.session_state[key])


def _discard(path: Path, key: str, saved: str) -> None:
    st.session_state[key] = saved
    drop_unsaved(path)


def show_code(editor: Editor) -> None:
    """Draw the file as it is now, closed until it is opened."""
    with st.expander(f"Study file: {editor.path.name}"):
        st.code(editor.draft.text, language="toml", line_numbers=True)


def list_faults(faults: list[Fault]) -> str:
    """Return the faults of a file as a list."""
    return "\n".join(f"- {escape_markdown(str(fault))}" for fault in faults)
