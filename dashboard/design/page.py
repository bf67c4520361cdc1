"""Design: write a study file with widgets, from a template to a build; every choice shows the file it makes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path

import streamlit as st

from dashboard.design import build_check, file, manage, network, new_study, participants, plan, steps, texts, trials
from dashboard.design.editor import ERROR, Editor, find_study, find_unsaved, list_own
from dashboard.design.fields import follow, show_all
from dashboard.design.settings import ADVANCED, STUDY
from dashboard.design.tasks import offer_tasks
from dashboard.shared import links
from dashboard.shared.keys import NEW_STUDY as NEW
from dashboard.shared.messages import escape_markdown, show_errors
from dashboard.studies import building
from study.plan.templates import templates
from study.workspace.workspace import home

SHOWN = "design_shown"
"""In the session: the study that the address named after the last run."""


def page() -> None:
    """Draw the page."""
    st.title("Design a study", anchor=False)
    st.caption(
        "Every choice is written into the study file at once; tables when you save them. Nothing is frozen until you "
        "build the study."
    )
    with show_errors():
        own = {path.stem: path for path in list_own(home())}
        name = _choose_study(own)
        links.show()
        error = st.session_state.pop(ERROR, None)
        if name == NEW:
            new_study.show(error)
        else:
            if error is not None:
                st.error(escape_markdown(error))
            _edit(own[name], is_saved=error is None and find_unsaved(own[name]) is None)


def _choose_study(own: Mapping[str, Path]) -> str:
    """Draw the choice of a study and what can be done with its file; return its name, which the address always says.

    The widget is not bound to the address: Streamlit takes a bound parameter out of links to other pages, too.
    """
    _follow_link(own)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name: str = st.selectbox("Study", [*own, NEW], key="study", width=420)
        if name != NEW:
            manage.show_actions(own[name])
    if st.query_params.get("study") != name:
        st.query_params["study"] = name
    st.session_state[SHOWN] = name
    return name


def _follow_link(own: Mapping[str, Path]) -> None:
    """Open the study that a link names; of one that came with Foretell, offer a copy."""
    given, chosen = st.query_params.get("study"), st.session_state.get("study")
    examples = {path.stem: path for path in templates()}
    if given is None or given == st.session_state.get(SHOWN):  # as this page wrote it: no link was followed
        follow("study", chosen if chosen in own or chosen == NEW else next(iter(own), NEW))
    elif given in own:
        follow("study", given)
    else:
        follow("study", NEW)
        if given in examples:
            st.session_state["new_template"] = examples[given]
        elif given != NEW:
            links.note("study", f"There is no study file “{given}” here.")


def _edit(path: Path, *, is_saved: bool) -> None:
    try:
        editor = Editor(path)
    except Exception:
        file.show_text(path)
        raise
    parts: dict[str, Callable[[Editor], None]] = {
        "Study": _study,
        "Trials": trials.show_trials,
        "Procedure": participants.show_procedure,
        "Texts": texts.show_texts,
        "Plan": plan.show_plan,
        "File": file.show_file,
        "Build": _build,
    }
    part = steps.choose_part()
    _problems(editor)
    study = find_study(editor)
    is_built = study is not None and study.bundle is not None and not study.has_changed
    build_check.show_state(editor, is_saved=is_saved, is_built=is_built)
    parts[part](editor)
    _offer_next(part)
    if part not in ("File", "Build"):
        file.show_code(editor)


def _offer_next(part: str) -> None:
    """Draw the button that opens the next part; nothing follows the last one."""
    following = dict(itertools.pairwise(steps.PARTS)).get(part)
    if following is not None:
        label, icon = f"Next: {following}", ":material/arrow_forward:"
        st.button(label, icon=icon, key="design_next", on_click=steps.open_part, args=(following,))


def _problems(editor: Editor) -> None:
    """List everything that is wrong in the file."""
    if editor.faults:
        count = len(editor.faults)
        st.warning(f"{count} {'thing' if count == 1 else 'things'} to correct:\n{file.list_faults(editor.faults)}")


def _study(editor: Editor) -> None:
    show_all(editor, [offer_tasks(editor, one) if one.place == "study.task" else one for one in STUDY], 2)
    network.show_sources(editor)
    with st.expander("Advanced"):
        show_all(editor, ADVANCED, 2)


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
