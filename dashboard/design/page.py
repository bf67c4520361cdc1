"""Design: write a study file with widgets, from a template to a build; every choice shows the file it makes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path

import streamlit as st

from dashboard.design import build_check, file, manage, network, participants, plan, stimuli, texts, trials
from dashboard.design.editor import ERROR, Editor, can_undo, find_study, find_unsaved, list_own, undo
from dashboard.design.fields import show_all
from dashboard.design.settings import CONTACT, STUDY
from dashboard.shared import links
from dashboard.shared.keys import NEW_STUDY as NEW
from dashboard.shared.messages import escape_markdown, show_errors
from dashboard.shared.sections import choose_section
from dashboard.studies import building
from study.plan.studyfiles import templates
from study.workspace.workspace import home

SECTION_KEY = "part"


def page() -> None:
    """Draw the page."""
    st.title("Design a study", anchor=False)
    st.caption(
        "Every choice is written into the study file at once; tables when you save them. Nothing is frozen until you "
        "build the study."
    )
    with show_errors():
        own = {path.stem: path for path in list_own(home())}
        _check_link(own)
        name = _choose_study(own)
        links.show()
        error = st.session_state.pop(ERROR, None)
        if name == NEW:
            manage.show_new(error)
        else:
            if error is not None:
                st.error(escape_markdown(error))
            _edit(own[name], is_saved=error is None and find_unsaved(own[name]) is None)


def _choose_study(own: Mapping[str, Path]) -> str:
    """Draw the choice of a study, with a button for a new one, and return its name."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name: str = st.selectbox("Study", [*own, NEW], key="study", bind="query-params", width=420)
        if name != NEW:
            st.button(
                "New study", icon=":material/add:", key="design_new", on_click=st.session_state.update,
                args=({"study": NEW},),
            )  # fmt: skip
    return name


def _check_link(own: dict[str, Path]) -> None:
    """Note a study of the link that is none of the workspace's own; of one that came with Foretell, begin a copy."""
    shipped = {path.stem: path for path in templates()}
    given = st.query_params.get("study", "")
    if given in own or given not in shipped:
        links.check("study", [NEW, *own], "study file")
        return
    links.note("study", f"“{given}” came with Foretell and stays as it is. Make a study of your own from it.")
    st.session_state.setdefault("new_template", shipped[given])


def _edit(path: Path, *, is_saved: bool) -> None:
    try:
        editor = Editor(path)
    except Exception:
        file.show_text(path)
        raise
    with st.container(horizontal=True, vertical_alignment="bottom"):
        manage.show_actions(editor)
        st.button("Undo", on_click=undo, args=(path,), disabled=not can_undo(path), key="design_undo_button")
    sections: dict[str, Callable[[Editor], None]] = {
        "Study": _study,
        "Network and images": network.show_sources,
        "Trials": trials.show_trials,
        "Explanations": stimuli.show_stimuli,
        "Procedure": participants.show_procedure,
        "Texts": texts.show_texts,
        "Plan": plan.show_plan,
        "File": file.show_file,
        "Build": _build,
    }
    section = choose_section("Section", sections, SECTION_KEY)
    _problems(editor)
    build_check.show_state(editor, is_saved=is_saved)
    sections[section](editor)
    _offer_next(section, list(sections))
    if section not in ("File", "Build"):
        file.show_code(editor)


def _offer_next(section: str, sections: list[str]) -> None:
    """Draw the button that opens the next section; nothing follows the last one."""
    following = dict(itertools.pairwise(sections)).get(section)
    if following is not None:
        st.button(
            f"Next: {following}",
            icon=":material/arrow_forward:",
            key="design_next",
            on_click=lambda: st.session_state.update({SECTION_KEY: following}),
        )


def _problems(editor: Editor) -> None:
    """List everything that is wrong in the file."""
    if editor.faults:
        count = len(editor.faults)
        st.warning(f"{count} {'thing' if count == 1 else 'things'} to correct:\n{file.list_faults(editor.faults)}")


def _study(editor: Editor) -> None:
    show_all(editor, STUDY, 2)
    st.header("Contact", anchor=False)
    show_all(editor, CONTACT, 2)


def _build(editor: Editor) -> None:
    """Build the study, and lead to what comes next."""
    if editor.config is None:
        return
    building.take_done()
    study = find_study(editor)
    if study is None:
        return
    building.show(study, has_check=False)
    if study.bundle is not None and not study.has_changed:
        st.success("The study is built as its file is now.")
        links.show_link("Preview, open and share it", "studies", study=study.name)
