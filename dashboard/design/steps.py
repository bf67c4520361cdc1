"""The four steps of a design: which part of which step is open, and which steps are complete."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from dashboard.design.editor import Editor
from dashboard.design.fields import follow
from dashboard.design.splitting import is_divided, is_one_set
from dashboard.shared import links
from dashboard.studies.checklist import describe_lacks
from study.building.check import StudyCheck

STEPS: Mapping[str, tuple[str, ...]] = {
    "Study and images": ("Study",),
    "Trials and explanations": ("Trials",),
    "Participants": ("Procedure", "Texts"),
    "Plan and build": ("Plan", "File", "Build"),
}
"""The parts of each step, in the order in which they are worked through; a link names the part."""
PARTS = tuple(part for parts in STEPS.values() for part in parts)
TABLES: Mapping[str, tuple[str, ...]] = {
    "Study": ("study", "language", "display", "classifier", "sets"),
    "Trials": ("trials", "conditions", "saliency", "teaching"),
    "Procedure": (
        *("consent", "pacing", "practice", "device", "keys", "recruiter", "pay", "check", "questionnaire", "contact"),
    ),
    "Texts": ("texts",),
    "Plan": ("allocation", "analysis"),
}
"""The tables of a study file that a part shows; all others are under File."""
QUERY = "part"
PART, SHOWN, STEP = "design_part", "design_part_shown", "design_step"
"""In the session: the open part, the one that the address named after the last run, and the widget of the steps."""


def choose_part() -> str:
    """Draw the choice of a step and of its part, and return the part, which the address says.

    The session keeps the part apart from the widgets: another page has a widget of the same parameter.
    """
    _follow_link()
    part: str = st.session_state.setdefault(PART, PARTS[0])
    step = next(step for step, parts in STEPS.items() if part in parts)
    _choose(STEP, "Step", tuple(STEPS), step, {step: parts[0] for step, parts in STEPS.items()})
    if len(STEPS[step]) > 1:
        _choose("design_of_step", "Part of the step", STEPS[step], part, {name: name for name in STEPS[step]})
    st.query_params[QUERY] = st.session_state[SHOWN] = part
    return part


def open_part(part: str) -> None:
    """Open a part of the page; for callbacks."""
    st.session_state[PART] = part


def _choose(key: str, label: str, names: tuple[str, ...], chosen: str, opens: Mapping[str, str]) -> None:
    follow(key, chosen)
    st.segmented_control(
        label, names, required=True, key=key, label_visibility="collapsed", wrap=True,
        on_change=lambda: open_part(opens[st.session_state[key]]),
    )  # fmt: skip


def _follow_link() -> None:
    given = st.query_params.get(QUERY)
    if given is None or given == st.session_state.get(SHOWN):  # as this page wrote it: no link was followed
        return
    if given in PARTS:
        open_part(given)
    else:
        links.note(PART, f"The link names the section “{given}”, which does not exist here. {links.INSTEAD}")


def show_marks(editor: Editor, checked: StudyCheck | None, *, is_built: bool) -> None:
    """Mark the steps that are complete, as far as a check knows; drawn again with it, the steps are not."""
    done = (
        _is_valid(editor, "Study") and _has_images(editor, checked),
        _is_valid(editor, "Trials") and checked is not None and checked.seconds is not None,
        _is_valid(editor, "Procedure", "Texts") and _has_contact(editor),
        _is_valid(editor, "Plan") and is_built,
    )
    step, marks = f".st-key-{STEP} [role=radio]", {True: '"✓" / "done"', False: "none"}
    rules = [f"{step}:nth-of-type({i})::before {{ content: {marks[one]}; }}" for i, one in enumerate(done, start=1)]
    st.html(f"<style>{''.join(rules)} {step}::before {{ margin-right: .4em; }}</style>")


def _is_valid(editor: Editor, *parts: str) -> bool:
    tables = {table for part in parts for table in TABLES[part]}
    return not any(fault.place.partition(".")[0] in tables for fault in editor.faults)


def _has_images(editor: Editor, checked: StudyCheck | None) -> bool:
    """Whether the images of the three roles differ and are of classes of the network."""
    is_whole = is_one_set(editor) and not is_divided(editor)
    return not is_whole and checked is not None and checked.supply is not None and not checked.doubts


def _has_contact(editor: Editor) -> bool:
    return editor.config is not None and not describe_lacks(editor.config.contact)
