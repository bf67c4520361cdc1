"""Notes on images and saved views, in Explore."""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st

from dashboard.shared import files, links
from dashboard.shared import service as door
from dashboard.shared.messages import escape_markdown, show_errors
from study.workspace.notes import (
    LONGEST_NAME,
    LONGEST_NOTE,
    ImageNote,
    SavedView,
    read_notes,
    read_views,
    remove_view,
    save_view,
    tabulate_notes,
    write_note,
)
from study.workspace.spreadsheets import csv_text
from study.workspace.workspace import home


def show_note(images: str, image: str) -> None:
    """Show the note on an image of a set, to be changed, and offer all notes on the set."""
    notes = read_notes(home(), images)
    note = notes.get(image)
    title = "Note" if note is None else f"Note by {escape_markdown(note.author)}"
    with st.expander(title, icon=":material/edit_note:"):
        _edit_note(images, image, note)
        if note is not None:
            st.caption(
                f"Written {note.written_at[:16].replace('T', ' ')} UTC. All researchers of this workspace see it."
            )
        if notes:
            table = tabulate_notes(notes)
            count = f"{len(table)} note" + ("s" if len(table) != 1 else "")
            files.offer_download(
                f"{count} on this image set (CSV)", lambda: csv_text(table), f"{images}.notes.csv", "text/csv"
            )


def _edit_note(images: str, image: str, note: ImageNote | None) -> None:
    """Draw the form of a note, and keep what is submitted."""
    with st.form(f"note {images} {image}", border=False):
        text = st.text_area(
            "Note on this image",
            "" if note is None else note.text,
            max_chars=LONGEST_NOTE,
            height=80,
            key=f"note.text.{images}/{image}",
        )
        wrong = st.toggle(
            "Its label is wrong", note is not None and note.label_is_wrong, key=f"note.wrong.{images}/{image}"
        )
        saved = st.form_submit_button("Save the note")
    if saved:
        with show_errors():
            write_note(home(), images, image, ImageNote(text.strip(), wrong, _author(), _now()))
            st.rerun()


def show_saved_views() -> None:
    """Offer the saved views, and a name to save this one under."""
    with st.popover("Saved views", icon=":material/bookmark:"):
        views = read_views(home())
        if not views:
            st.caption("No view is saved yet. All researchers of this workspace see what is saved.")
        for name, view in views.items():
            _show_saved_view(name, view)
        with st.form("save a view", border=False, clear_on_submit=True):
            name = st.text_input("Name of this view", max_chars=LONGEST_NAME, key="view.name")
            saved = st.form_submit_button("Save this view")
        if saved:
            with show_errors():
                save_view(home(), name.strip(), SavedView(links.read_query(), _author(), _now()))
                st.rerun()


def _show_saved_view(name: str, view: SavedView) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        with st.container(width="stretch", gap=None):
            links.show_view_link(name, f"/explore?{view.query}")
            st.caption(escape_markdown(f"{view.author}, {view.saved_at[:10]}"))
        if st.button(
            "Remove", key=f"view.remove.{name}", type="tertiary", icon=":material/delete:", help=f"Remove {name}"
        ):
            with show_errors():
                remove_view(home(), name)
                st.rerun()


def _author() -> str:
    return door.get_acting_researcher().actor


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
