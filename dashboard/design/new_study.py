"""Begin a study: from one that came with Foretell, or from the archive."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from dashboard.design.editor import keep_errors, may_design
from dashboard.design.handover import apply_handover, describe_handover
from dashboard.design.manage import ARCHIVED, door, read_name
from dashboard.shared.messages import escape_markdown
from study.plan import studyfiles, templates
from study.plan.templates import TEMPLATES, Template
from study.workspace.workspace import home


def show(error: str | None) -> None:
    """Draw the choice of a template with a screenshot of its trials, the fields of a new study, and the archive.

    Parameters
    ----------
    error
        What prevented the study, if anything.
    """
    if (archived := st.session_state.pop(ARCHIVED, None)) is not None:
        st.success(escape_markdown(f"{archived} is archived. Restore it under Archive, below."))
    for line in describe_handover():
        st.info(escape_markdown(line))
    form, shown = st.columns(2, gap="large")
    with form:
        name = _choose_template()
        _ask_name(templates.read_title(name), error)
    with shown:
        _show_template(name, TEMPLATES[name])
    _show_archive()


def _choose_template() -> str:
    """Draw the choice of a template, and return its name."""
    paths = {templates.path_of(name): name for name in TEMPLATES}
    chosen: Path = st.radio(
        "Start from",
        list(paths),
        format_func=lambda path: TEMPLATES[paths[path]].title,
        key="new_template",
        help="These studies came with Foretell and stay as they are: yours is a copy.",
    )
    return paths[chosen]


def _ask_name(title: str, error: str | None) -> None:
    """Draw the fields of the new study's name and title, the template's unless given, and the button that makes it."""
    with st.form("new_study"):
        st.text_input("Name", key="new_name", help="In links: lower-case letters, digits and hyphens.")
        st.text_input("Title", key="new_title", help="What participants read.", placeholder=title)
        if error is not None:
            st.error(escape_markdown(error))
        st.form_submit_button("Create study", type="primary", on_click=_make)


def _show_template(name: str, template: Template) -> None:
    """Draw what a template measures, a trial as participants see it, its publication, and what differs from that."""
    st.markdown(escape_markdown(template.measures))
    screenshot = templates.TRIALS / f"{template.trial}.webp"
    shown = "A trial, as participants see it"
    st.image(screenshot, caption=shown, width="stretch", alt=shown)
    st.caption(escape_markdown(templates.read_note(name)))


def _make() -> None:
    given = st.session_state
    with keep_errors():
        path = door().copy_study(given["new_template"], read_name("new_name"), given["new_title"].strip())
        apply_handover(path)
        st.session_state["study"] = path.stem


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
