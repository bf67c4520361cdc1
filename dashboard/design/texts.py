"""The texts that participants read, next to the page that participants will see."""

from __future__ import annotations

import streamlit as st

from core.errors import ForetellError
from core.names import format_name, upper_first
from dashboard.design.columns import side_by_side
from dashboard.design.editor import Editor, change
from dashboard.design.fields import follow
from dashboard.design.settings import LANGUAGES
from dashboard.server.drafts import make_address
from dashboard.shared.keys import digest
from dashboard.shared.messages import escape_markdown
from study.conditions import CONDITIONS, format_condition
from study.locales import CATALOGUES
from study.participation.draft import STAGES, TRIAL_PAGES, DraftPage, find_fullest, list_conditions
from study.plan.draft import MISSING
from study.plan.texts import DEFAULT_LANGUAGE, DEFAULTS, explain_placeholders, list_default_texts
from study.tasks import find_task
from study.tasks.task import Task

MAIN_TEXTS = ("consent", "instructions", "example", "practice", "main", "question", "feedback", "debrief")
TITLES = {"practice": "Before practice", "main": "Before the main trials", "debrief": "Debriefing"}
"""Of texts whose key does not say where they are read."""
PAGES: dict[DraftPage, str] = {
    "consent": "Consent",
    "instructions": "Instructions",
    "check": "Comprehension check",
    "example": "Example",
    "practice": "Before practice",
    "trial": "A trial",
    "feedback": "Feedback in practice",
    "main": "Before the main trials",
    "confidence": "Confidence",
    "catch": "Attention check",
    "questionnaire": "Questionnaire",
    "done": "Debriefing",
    "declined": "Declined",
}
BY_CONDITION: tuple[DraftPage, ...] = ("example", *TRIAL_PAGES)
"""Pages that differ between conditions."""
PAGE_OF: dict[str, DraftPage] = {
    "agree": "consent",
    "agree_age": "consent",
    "debrief": "done",
    "debrief_placebo": "done",
    "example_map": "example",
    "example_examples": "example",
    "example_both": "example",
    "question": "trial",
    "map_legend": "trial",
    "examples_legend": "trial",
    "label": "trial",
    "choice_right": "trial",
    "choice_wrong": "trial",
    **{page: page for page in (*STAGES, *TRIAL_PAGES) if page not in ("done", "trial")},
}
"""The page on which a text is read; the other texts belong to pages that few participants meet."""
PAGE_KEY, LANGUAGE_KEY, CONDITION_KEY = "design.page", "design.language", "design.condition"
HEIGHT, TRIAL_HEIGHT = 640, 700


def show_texts(editor: Editor) -> None:
    """Draw the texts with a field for the study's own, and the participants' page."""
    st.caption(
        "The study's own texts replace the default ones. Blank lines separate paragraphs; participants read all other "
        "characters as they are written, so there is no bold or italic type."
    )
    written, read = side_by_side("participant")
    with written:
        _edit_texts(editor)
    with read:
        _show_page(editor)


def _edit_texts(editor: Editor) -> None:
    own, task = editor.draft.get("texts"), _find_task(editor)
    texts = list_default_texts(_find_language(editor), task)
    told = [key for key in MAIN_TEXTS if task.is_scored_at_once or key != "feedback"]
    main = [*told, *(key for key in texts if key not in DEFAULTS and not key.startswith("ui."))]
    changed = [key for key in (own if isinstance(own, dict) else {}) if key in texts]
    rest = [key for key in texts if not key.startswith("ui.") and key not in main]
    for key in dict.fromkeys([*main, *changed]):  # a text that is written stays where it is
        _edit_text(editor, key, task)
    with st.expander("All other texts"):
        chosen = st.selectbox("Text", [key for key in rest if key not in changed], key=f"design.{editor.name}.text")
        _edit_text(editor, chosen, task)


def _find_language(editor: Editor) -> str:
    """Return the study's language, or English while the file names none that is known."""
    language = str(editor.value("language"))
    return language if language in CATALOGUES else DEFAULT_LANGUAGE


def _find_task(editor: Editor) -> Task:
    """Return the study's task, or the default one while the file has none that is known."""
    try:
        return find_task(editor.draft.content)
    except ForetellError:
        return find_task({})


def _edit_text(editor: Editor, key: str, task: Task) -> None:
    """Draw the field of one text, and below it what participants read where no page of text shows it."""
    place, language = f"texts.{key}", _find_language(editor)
    value = editor.draft.get(place)
    name = f"design.{editor.name}.{place}"
    default = list_default_texts(language, task)[key]
    follow(name, default if value is MISSING else str(value))
    shown = _find_page(editor, key)

    def write() -> None:
        text = st.session_state[name].strip()
        change(editor.path, {place: MISSING if text in ("", default) else text})
        if shown is not None:
            st.session_state[PAGE_KEY], condition = shown
            st.session_state[CONDITION_KEY] = condition or st.session_state.get(CONDITION_KEY)

    with st.container(border=True):
        title = TITLES.get(key, format_name(key))
        st.markdown(f"**{title}**" + ("" if value is MISSING else " :blue-badge[own]"))
        lines = min(14, 2 + len(st.session_state[name]) // 60)
        st.text_area(title, key=name, height=40 + 26 * lines, on_change=write, label_visibility="collapsed")
        unknown = explain_placeholders(key, st.session_state[name])
        if unknown:
            st.caption(f":orange[:material/warning: {escape_markdown(upper_first(unknown))}]")
        if shown is None:
            _show_elsewhere(key, language, task, own=value is not MISSING)


def _find_page(editor: Editor, key: str) -> tuple[DraftPage, str | None] | None:
    """Find the page on which a text is read, and the condition that has words of its own for it, if it is one."""
    if key in PAGE_OF:
        return PAGE_OF[key], None
    for condition in list_conditions(editor.draft.content):
        for replaced, own in CONDITIONS[condition].words.items():
            if own == key and replaced in PAGE_OF:
                return PAGE_OF[replaced], condition
    return None


def _show_elsewhere(key: str, language: str, task: Task, *, own: bool) -> None:
    for other in CATALOGUES:
        text = list_default_texts(other, task).get(key)
        if other != language and not own and text is not None:
            st.caption(f"{LANGUAGES.get(other, other)}: {escape_markdown(text[:300])}")


def _show_page(editor: Editor) -> None:
    """Draw the participants' own page with the study's texts, in the study's language or another, in a condition."""
    st.session_state.setdefault(LANGUAGE_KEY, editor.value("language"))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        pages = [one for one in PAGES if one != "feedback" or _find_task(editor).is_scored_at_once]
        page = st.selectbox("Participant's page", pages, format_func=PAGES.__getitem__, key=PAGE_KEY, width=220)
        condition = _choose_condition(editor) if page in BY_CONDITION else ""
        language = st.segmented_control(
            "Language", list(CATALOGUES), format_func=lambda one: LANGUAGES.get(one, one), required=True,
            key=LANGUAGE_KEY, help="The study's own texts stay as they are written.",
        )  # fmt: skip
    address = make_address(editor.path.stem, str(language), page, digest(editor.draft.text)[:16], condition)
    st.iframe(address, height=TRIAL_HEIGHT if page in TRIAL_PAGES else HEIGHT, alt=f"Participant's page: {PAGES[page]}")
    if page in TRIAL_PAGES:
        st.caption("Drawings take the place of the images, which exist once the study is built.")


def _choose_condition(editor: Editor) -> str:
    """Choose one of the study's conditions, at first the one that shows most."""
    names = list_conditions(editor.draft.content)
    if st.session_state.get(CONDITION_KEY) not in names:
        st.session_state[CONDITION_KEY] = find_fullest(names)
    chosen: str = st.selectbox("Condition", names, format_func=format_condition, key=CONDITION_KEY, width=180)
    return chosen
