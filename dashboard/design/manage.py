"""Make a new study file; duplicate, rename or archive one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import streamlit as st

from core.errors import ForetellError
from dashboard.design import comparison
from dashboard.design.editor import Editor, keep_errors, may_design
from dashboard.design.handover import apply_handover, describe_handover
from dashboard.shared import service
from dashboard.shared.keys import NEW_STUDY
from dashboard.shared.messages import escape_markdown
from study.collection.researcher import Researcher
from study.plan import studyfiles
from study.workspace.workspace import home

ARCHIVED = "design_archived"
"""In the session: the study that was archived just now."""


def door() -> Researcher:
    """Return the door of this browser's login."""
    return service.get_acting_researcher()


def show_new(error: str | None) -> None:
    """Draw the form of a new study, with what prevented it, and the archive."""
    templates = studyfiles.templates()
    if (archived := st.session_state.pop(ARCHIVED, None)) is not None:
        st.success(escape_markdown(f"{archived} is archived. Restore it under Archive, below."))
    for line in describe_handover():
        st.info(escape_markdown(line))
    with st.form("new_study"):
        st.radio(
            "Start from",
            list(templates),
            format_func=templates.__getitem__,
            key="new_template",
            help="These studies came with Foretell and stay as they are: yours is a copy.",
        )
        st.text_input("Name", key="new_name", help="In links: lower-case letters, digits and hyphens.")
        st.text_input("Title", key="new_title", help="What participants read.", placeholder="Predict the AI")
        if error is not None:
            st.error(escape_markdown(error))
        st.form_submit_button("Create study", type="primary", on_click=_make)
    _show_archive()


def show_actions(editor: Editor) -> None:
    """Draw what can be done with the file as a whole."""
    with _open_popover("Duplicate"):
        copy = f"{editor.name}-2"
        _ask_name("Duplicate", editor, "Name of the copy", copy, lambda name: door().copy_study(editor.path, name))
    with _open_popover("Rename"):
        _ask_name("Rename", editor, "New name", editor.name, lambda name: door().rename_study(editor.path, name))
    with _open_popover("Pilot"):
        _ask_pilot(editor)
    if st.button("Compare", key="compare_studies"):
        comparison.compare(editor)
    with _open_popover("Archive"):
        st.caption("The file moves to the archive. What is built and collected stays where it is.")
        st.button("Archive", key="archive_study", on_click=_archive, args=(editor.path,))


def _open_popover(action: str) -> Any:
    """Open a popover that is closed by what its button does."""
    return st.popover(action, key=f"{action}_ask", on_change="rerun")


@contextmanager
def _close_popover(action: str) -> Iterator[None]:
    """Close the popover of an action once that is done; what prevented it is kept, and the popover stays open."""
    with keep_errors():
        yield
        st.session_state[f"{action}_ask"] = False


def _read_name(key: str) -> str:
    name: str = st.session_state[key].strip()
    if not name:
        raise ForetellError("Give the study a name.")
    return name


def _make() -> None:
    given = st.session_state
    with keep_errors():
        path = door().copy_study(given["new_template"], _read_name("new_name"), given["new_title"].strip())
        apply_handover(path)
        st.session_state["study"] = path.stem


def _ask_name(action: str, editor: Editor, label: str, offered: str, act: Callable[[str], Path]) -> None:
    """Draw a field for a name, at first the offered one, and a button that acts with it."""
    key = f"design.{editor.name}.{action}"

    def go() -> None:
        with _close_popover(action):
            st.session_state["study"] = act(_read_name(key)).stem

    st.text_input(label, offered, key=key)
    st.button(action, key=f"{action}_go", on_click=go)


def _ask_pilot(editor: Editor) -> None:
    """Draw how many participants a pilot has, and a button that makes it."""
    pilot = studyfiles.name_pilot(editor.name)
    st.caption(
        f"A pilot is a study of its own, {pilot}, with the same trials and fewer participants. Its responses stay out "
        f"of this study, and {editor.name} will turn away its participants, by the ID in their link."
    )
    st.number_input("Participants per condition", 1, 100, studyfiles.PILOT_SIZE, key="pilot_size")
    st.button("Make the pilot", key="pilot_go", on_click=_make_pilot, args=(editor.path,))


def _make_pilot(path: Path) -> None:
    with _close_popover("Pilot"):
        st.session_state["study"] = door().copy_pilot(path, st.session_state["pilot_size"]).stem


def _archive(path: Path) -> None:
    with _close_popover("Archive"):
        door().archive_study(path)
        st.session_state["study"] = NEW_STUDY
        st.session_state[ARCHIVED] = path.stem


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
