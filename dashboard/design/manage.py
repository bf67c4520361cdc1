"""Make a new study file; duplicate, rename, archive one; compare two."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import streamlit as st

from core.errors import ForetellError
from dashboard.design.editor import Editor, keep_errors, list_own, may_design
from dashboard.design.handover import apply_handover, describe_handover
from dashboard.shared import service
from dashboard.shared.messages import escape_markdown, show_errors
from study.collection.researcher import Researcher
from study.plan import studyfiles
from study.workspace.workspace import home


def door() -> Researcher:
    """Return the door of this browser's login."""
    return service.get_acting_researcher()


def show_new(error: str | None) -> None:
    """Draw the form of a new study, with what prevented it, and the archive."""
    templates = studyfiles.templates()
    for line in describe_handover():
        st.info(escape_markdown(line))
    with st.form("new_study"):
        st.radio("Begin with", list(templates), format_func=templates.__getitem__, key="new_template")
        st.text_input("Name", key="new_name", help="In links: lower-case letters, digits and hyphens.")
        st.text_input("Title", key="new_title", help="What participants read.", placeholder="Predict the AI")
        if error is not None:
            st.error(escape_markdown(error))
        st.form_submit_button("Make the study", type="primary", on_click=_make)
    _show_archive()


def show_actions(editor: Editor) -> None:
    """Draw what can be done with the file as a whole."""
    with st.popover("Duplicate"):
        _ask_name(
            "duplicate",
            editor,
            "Name of the copy",
            lambda name: door().copy_study(editor.path, name),
        )
    with st.popover("Rename"):
        _ask_name("rename", editor, "New name", lambda name: door().rename_study(editor.path, name))
    with st.popover("Pilot"):
        _ask_pilot(editor)
    with st.popover("Compare"):
        _compare(editor)
    with st.popover("Archive"):
        st.caption("The file moves to the archive. What is built and collected stays where it is.")
        st.button("Archive", key="archive_study", on_click=_archive, args=(editor.path,))


def _make() -> None:
    given = st.session_state
    with keep_errors():
        name = given["new_name"].strip()
        if not name:
            raise ForetellError("Give the study a name.")
        path = door().copy_study(given["new_template"], name, given["new_title"].strip())
        apply_handover(path)
        given["study"] = path.stem


def _ask_name(what: str, editor: Editor, label: str, act: Callable[[str], Path]) -> None:
    """Draw a field for a name and a button that acts with it."""
    key = f"{what}_name"

    def go() -> None:
        with keep_errors():
            st.session_state["study"] = act(st.session_state[key].strip()).stem

    st.text_input(label, key=key, placeholder=f"{editor.name}-2")
    st.button(what.capitalize(), key=f"{what}_go", on_click=go)


def _ask_pilot(editor: Editor) -> None:
    """Draw how many participants a pilot has, and a button that makes it."""
    pilot = studyfiles.name_pilot(editor.name)
    st.caption(
        f"A pilot is a study of its own, {pilot}, with the same trials and fewer participants. Its responses stay out "
        f"of this study, and {editor.name} will turn away whoever took part in it, by the ID in their link."
    )
    st.number_input("Participants per condition", 1, 100, studyfiles.PILOT_SIZE, key="pilot_size")
    st.button("Make the pilot", key="pilot_go", on_click=_make_pilot, args=(editor.path,))


def _make_pilot(path: Path) -> None:
    with keep_errors():
        st.session_state["study"] = door().copy_pilot(path, st.session_state["pilot_size"]).stem


def _archive(path: Path) -> None:
    with keep_errors():
        door().archive_study(path)
        st.session_state.pop("study", None)


def _show_archive() -> None:
    archived = [path for path in studyfiles.list_archived(home()) if may_design(path)]
    if not archived:
        return
    with st.expander(f"Archive ({len(archived)})"):
        for path in archived:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(escape_markdown(path.stem))
                st.button("Restore", key=f"restore_{path.stem}", on_click=_restore, args=(path,))


def _restore(path: Path) -> None:
    with keep_errors():
        st.session_state["study"] = door().restore_study(path).stem


def _compare(editor: Editor) -> None:
    others = [path for path in list_own(home()) if path != editor.path]
    others += list(studyfiles.templates())
    other = st.selectbox("Compare with", others, format_func=lambda path: path.stem, key="compare_with")
    with show_errors():
        differences = studyfiles.compare_studies(editor.path, other)
        if not differences:
            st.caption("The two files have the same settings.")
            return
        rows = [(one.place, _format_value(one.first), _format_value(one.second)) for one in differences]
        st.dataframe(pd.DataFrame(rows, columns=["Setting", editor.name, other.stem]), hide_index=True)


def _format_value(value: object) -> str:
    return "default" if value is None else str(value)
