"""The texts that participants read, next to the page that participants will see."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard.design.editor import Editor, change
from dashboard.design.settings import LANGUAGES
from dashboard.server.drafts import make_address
from dashboard.shared.keys import digest
from dashboard.shared.messages import escape_markdown
from study.locales import CATALOGUES
from study.participation.draft import STAGES
from study.participation.page import DraftStage
from study.plan.draft import MISSING
from study.plan.texts import DEFAULTS

MAIN_TEXTS = ("consent", "instructions", "example", "practice", "main", "question", "debrief")
PAGES: dict[DraftStage, str] = {
    "consent": "Consent",
    "instructions": "Instructions",
    "check": "Comprehension check",
    "example": "Example",
    "questionnaire": "Questionnaire",
    "done": "Debriefing",
    "declined": "Declined",
}
PAGE_OF: dict[str, DraftStage] = {
    "agree": "consent",
    "agree_age": "consent",
    "debrief": "done",
    "debrief_placebo": "done",
    "example_map": "example",
    "example_examples": "example",
    "example_both": "example",
    **{stage: stage for stage in STAGES if stage != "done"},
}
"""The page on which a text is read; the other texts belong to trials, or to pages that few participants meet."""
PAGE_KEY, LANGUAGE_KEY = "design.page", "design.language"
HEIGHT = 640
STYLE = """<style>
[data-testid=stColumn]:has(.st-key-design_participant) { position: sticky; top: 4rem; align-self: flex-start; }
.st-key-design_participant iframe { border: 1px solid #8a90a0; border-radius: .5rem; }
@media (max-width: 640px) {
  [data-testid=stColumn]:has(.st-key-design_participant) { order: -1; position: static; }
}
</style>"""


def show_texts(editor: Editor) -> None:
    """Draw the texts with a field for the study's own, and the participants' page."""
    st.html(STYLE)
    st.caption("The study's own texts replace the default ones. Blank lines separate paragraphs.")
    left, right = st.columns(2, gap="large")
    with left:
        _edit_texts(editor)
    with right.container(key="design_participant"):
        _show_page(editor)


def _edit_texts(editor: Editor) -> None:
    own = editor.draft.get("texts")
    changed = [key for key in (own if isinstance(own, dict) else {}) if key in DEFAULTS]
    rest = [key for key in DEFAULTS if not key.startswith("ui.") and key not in MAIN_TEXTS]
    for key in dict.fromkeys([*changed, *MAIN_TEXTS]):
        _edit_text(editor, key)
    with st.expander("All other texts"):
        chosen = st.selectbox("Text", [key for key in rest if key not in changed], key=f"design.{editor.name}.text")
        _edit_text(editor, chosen)


def _edit_text(editor: Editor, key: str) -> None:
    """Draw the field of one text, and below it what participants read where no page of text shows it."""
    place, language = f"texts.{key}", editor.value("language")
    found = editor.draft.get(place)
    name = f"design.{editor.name}.{place}"
    default = CATALOGUES.get(language, DEFAULTS).get(key, DEFAULTS[key])
    st.session_state[name] = default if found is MISSING else str(found)

    def write() -> None:
        text = st.session_state[name].strip()
        change(editor.path, {place: MISSING if text in ("", default) else text})
        if key in PAGE_OF:
            st.session_state[PAGE_KEY] = PAGE_OF[key]

    with st.container(border=True):
        title = key.replace("_", " ").capitalize()
        st.markdown(f"**{title}**" + ("" if found is MISSING else " :blue-badge[own]"))
        lines = min(14, 2 + len(st.session_state[name]) // 60)
        st.text_area(title, key=name, height=40 + 26 * lines, on_change=write, label_visibility="collapsed")
        if key not in PAGE_OF:
            _show_elsewhere(key, language, own=found is not MISSING)


def _show_elsewhere(key: str, language: Any, *, own: bool) -> None:
    for other, texts in CATALOGUES.items():
        if other != language and not own:
            st.caption(f"{LANGUAGES.get(other, other)}: {escape_markdown(texts[key][:300])}")


def _show_page(editor: Editor) -> None:
    """Draw the participants' own page with the study's texts, in the study's language or another."""
    st.session_state.setdefault(LANGUAGE_KEY, editor.value("language"))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        stage = st.selectbox("Participant's page", list(PAGES), format_func=PAGES.__getitem__, key=PAGE_KEY, width=240)
        language = st.segmented_control(
            "Language", list(CATALOGUES), format_func=lambda one: LANGUAGES.get(one, one), required=True,
            key=LANGUAGE_KEY, help="The study's own texts stay as they are written.",
        )  # fmt: skip
    address = make_address(editor.path.stem, str(language), stage, digest(editor.draft.text)[:16])
    st.iframe(address, height=HEIGHT, alt=f"Participant's page: {PAGES[stage]}")
