"""Make a new study file; duplicate, rename or archive one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import streamlit as st

from core.errors import ForetellError
from dashboard.design import comparison
from dashboard.design.editor import Editor, can_undo, keep_errors, may_design, undo
from dashboard.design.handover import apply_handover, describe_handover
from dashboard.shared import service
from dashboard.shared.keys import NEW_STUDY
from dashboard.shared.messages import escape_markdown
from study.collection.researcher import Researcher
from study.plan import studyfiles
from study.workspace.workspace import home

ARCHIVED, MENU = "design_archived", "design_menu"
"""In the session: the study that was archived just now, and whether the menu of a study is open."""


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


def show_actions(path: Path) -> None:
    """Draw the menu of what can be done with the file as a whole."""
    name = path.stem
    with st.popover("Actions", key=MENU, on_change="rerun"):
        st.button("New study", on_click=st.session_state.update, args=({"study": NEW_STUDY},))
        st.button("Undo", on_click=undo, args=(path,), disabled=not can_undo(path), key="design_undo_button")
        if st.button("Compare", key="compare_studies"):
            comparison.compare(Editor(path))
        with st.expander("Duplicate"):
            _ask_name("Duplicate", name, "Name of the copy", f"{name}-2", lambda new: door().copy_study(path, new))
        with st.expander("Rename"):
            _ask_name("Rename", name, "New name", name, lambda new: door().rename_study(path, new))
        with st.expander("Pilot"):
            _ask_pilot(path)
        with st.expander("Archive"):
            st.caption("The file moves to the archive. What is built and collected stays where it is.")
            st.button("Archive", key="archive_study", on_click=_archive, args=(path,))


@contextmanager
def _close_menu() -> Iterator[None]:
    """Close the menu once an action is done; what prevented it is kept, and the menu stays open."""
    with keep_errors():
        yield
        st.session_state[MENU] = False


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


def _ask_name(action: str, name: str, label: str, offered: str, act: Callable[[str], Path]) -> None:
    """Draw a field for a name, at first the offered one, and a button that acts with it."""
    key = f"design.{name}.{action}"

    def go() -> None:
        with _close_menu():
            st.session_state["study"] = act(_read_name(key)).stem

    st.text_input(label, offered, key=key)
    st.button(action, key=f"{action}_go", on_click=go)


def _ask_pilot(path: Path) -> None:
    """Draw how many participants a pilot has, and a button that makes it."""
    pilot = studyfiles.name_pilot(path.stem)
    st.caption(
        f"A pilot is a study of its own, {pilot}, with the same trials and fewer participants. Its responses stay out "
        f"of this study, and {path.stem} will turn away its participants, by the ID in their link."
    )
    st.number_input("Participants per condition", 1, 100, studyfiles.PILOT_SIZE, key="pilot_size")
    st.button("Make the pilot", key="pilot_go", on_click=_make_pilot, args=(path,))


def _make_pilot(path: Path) -> None:
    with _close_menu():
        st.session_state["study"] = door().copy_pilot(path, st.session_state["pilot_size"]).stem


def _archive(path: Path) -> None:
    with _close_menu():
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
