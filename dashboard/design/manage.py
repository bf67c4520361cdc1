"""The menu of a study file: duplicate, rename, pilot or archive it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import streamlit as st

from core.errors import ForetellError
from dashboard.design import comparison
from dashboard.design.editor import Editor, can_undo, keep_errors, read_now, undo
from dashboard.design.settings import SIZE_WITHIN, WITHIN
from dashboard.shared import service
from dashboard.shared.keys import NEW_STUDY
from study.collection.researcher import Researcher
from study.plan import studyfiles

ARCHIVED, MENU = "design_archived", "design_menu"
"""In the session: the study that was archived just now, and whether the menu of a study is open."""


def door() -> Researcher:
    """Return the door of this browser's login."""
    return service.get_acting_researcher()


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


def read_name(key: str) -> str:
    """Return the name in a field; an error if it is empty."""
    name: str = st.session_state[key].strip()
    if not name:
        raise ForetellError("Give the study a name.")
    return name


def _ask_name(action: str, name: str, label: str, offered: str, act: Callable[[str], Path]) -> None:
    """Draw a field for a name, at first the offered one, and a button that acts with it."""
    key = f"design.{name}.{action}"

    def go() -> None:
        with _close_menu():
            st.session_state["study"] = act(read_name(key)).stem

    st.text_input(label, offered, key=key)
    st.button(action, key=f"{action}_go", on_click=go)


def _ask_pilot(path: Path) -> None:
    """Draw how many participants a pilot has, and a button that makes it."""
    pilot = studyfiles.name_pilot(path.stem)
    st.caption(
        f"A pilot is a study of its own, {pilot}, with the same trials and fewer participants. Its responses stay out "
        f"of this study, and {path.stem} will turn away its participants, by the ID in their link."
    )
    st.number_input(_name_size(path), 1, 100, studyfiles.PILOT_SIZE, key="pilot_size")
    st.button("Make the pilot", key="pilot_go", on_click=_make_pilot, args=(path,))


def _name_size(path: Path) -> str:
    """Name the field of a pilot's size; a file that cannot be read still opens, as text."""
    with contextlib.suppress(ForetellError):
        if read_now(path, WITHIN.place) is True:
            return SIZE_WITHIN.label
    return "Participants per condition"


def _make_pilot(path: Path) -> None:
    with _close_menu():
        st.session_state["study"] = door().copy_pilot(path, st.session_state["pilot_size"]).stem


def _archive(path: Path) -> None:
    with _close_menu():
        door().archive_study(path)
        st.session_state["study"] = NEW_STUDY
        st.session_state[ARCHIVED] = path.stem
