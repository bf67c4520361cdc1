"""The procedure for participants apart from the trials."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.design.editor import Editor, change
from dashboard.design.fields import Setting, show_all, show_faults, toggle_table
from dashboard.design.settings import CHECK, CONSENT, CONTACT, DEVICE, PACING, RECRUITER, SITTINGS
from study.locales import CATALOGUES
from study.plan.draft import MISSING
from study.plan.texts import DEFAULTS, list_default_boxes

OPTIONS_HELP = "Separate the options with semicolons."
FIRST_SITTINGS = {"count": 2, "gap_hours": 24, "within_hours": 72}
"""Sittings where a study gets some."""
KINDS = ("scale", "choice", "text")


def show_procedure(editor: Editor) -> None:
    """Draw what participants go through besides the trials."""
    parts: dict[str, tuple[Setting, ...]] = {
        "Consent": tuple(_show_default_boxes(editor, setting) for setting in CONSENT),
        "Pace and attention": PACING,
        "Device and keys": DEVICE,
        "Recruitment service and pay": RECRUITER,
    }
    for title, settings in parts.items():
        with st.expander(title, expanded=title == "Consent"):
            show_all(editor, settings, 2)
    with st.expander("Several sittings", expanded=editor.draft.get("sittings") is not MISSING):
        _choose_sittings(editor)
    with st.expander("Comprehension check"):
        show_all(editor, CHECK, 2)
        _edit_questions(editor)
    with st.expander("Questionnaire after the trials"):
        _edit_questionnaire(editor)
    st.header("Contact", anchor=False)
    show_all(editor, CONTACT, 2)


def _choose_sittings(editor: Editor) -> None:
    """Divide the trials among sittings, or not."""
    label = "Divide the trials among several sittings"
    explained = (
        "Participants return by a personal link, on any device. Their trials are divided among the sittings, as many "
        "of each type in each; Results show accuracy and who returned, by sitting."
    )
    if toggle_table(editor, "sittings", FIRST_SITTINGS, label, explained):
        show_all(editor, SITTINGS, 2)


def _show_default_boxes(editor: Editor, setting: Setting) -> Setting:
    """Show in the empty field of the boxes those that participants tick without boxes of the study's own."""
    if setting.place != "consent.boxes":
        return setting
    texts = CATALOGUES.get(editor.value("language"), DEFAULTS)
    return replace(setting, placeholder="\n".join(list_default_boxes(texts)))


def _edit_questions(editor: Editor) -> None:
    st.caption(f"Questions about the instructions. {OPTIONS_HELP} The correct option is one of them.")
    questions_so_far = editor.draft.get("check.questions")
    rows = [
        {
            "Question": one.get("text", ""),
            "Options": "; ".join(one.get("options", ())),
            "Correct option": one.get("answer", ""),
        }
        for one in (questions_so_far if isinstance(questions_so_far, list) else [])
    ]
    edited = _edit_rows(editor, "check.questions", rows, ["Question", "Options", "Correct option"], {})
    if edited is None:
        return
    questions = [
        {"text": row["Question"], "options": _split(row["Options"]), "answer": row["Correct option"]} for row in edited
    ]
    change(editor.path, {"check.questions": questions or MISSING})
    st.rerun()


def _edit_questionnaire(editor: Editor) -> None:
    st.caption(f"A scale has a number of points with a name for each end. A choice has options. {OPTIONS_HELP}")
    items_so_far = editor.draft.get("questionnaire")
    rows = [
        {
            "ID": one.get("id", ""),
            "Kind": one.get("kind", "text"),
            "Question": one.get("text", ""),
            "Options": "; ".join(one.get("options", ())),
            "Points": one.get("points", 7) if one.get("kind") == "scale" else None,
            "Low": one.get("low", ""),
            "High": one.get("high", ""),
            "Required": one.get("required", True),
        }
        for one in (items_so_far if isinstance(items_so_far, list) else [])
    ]
    columns = {
        "Kind": st.column_config.SelectboxColumn(options=KINDS, required=True, default="scale"),
        "Points": st.column_config.NumberColumn(min_value=2, max_value=11, step=1),
        "Required": st.column_config.CheckboxColumn(default=True),
    }
    names = ["ID", "Kind", "Question", "Options", "Points", "Low", "High", "Required"]
    edited = _edit_rows(editor, "questionnaire", rows, names, columns)
    if edited is not None:
        change(editor.path, {"questionnaire": [_make_question(row) for row in edited] or MISSING})
        st.rerun()


def _make_question(row: dict[str, Any]) -> dict[str, Any]:
    """Return an item of the questionnaire as the study file writes it, without what its kind does not have."""
    item: dict[str, Any] = {"id": row["ID"], "kind": row["Kind"], "text": row["Question"]}
    if row["Kind"] == "choice":
        item["options"] = _split(row["Options"])
    if row["Kind"] == "scale":
        item |= {"points": int(row["Points"] or 7), "low": row["Low"], "high": row["High"]}
    return item if row["Required"] else {**item, "required": False}


def _edit_rows(
    editor: Editor, place: str, rows: list[dict[str, Any]], names: list[str], columns: dict[str, Any]
) -> list[dict[str, Any]] | None:
    """Draw a table with a button; return its rows, without empty ones, once the button is clicked."""
    key = f"design.{editor.name}.{place}.{hash(str(rows))}"  # another content of the file begins a new table
    edited = st.data_editor(
        pd.DataFrame(rows, columns=names), key=key, num_rows="dynamic", hide_index=True, column_config=columns
    )
    show_faults(editor, place)
    with st.container(horizontal=True, vertical_alignment="center"):
        is_saved = st.button("Save the table", key=f"{key}.write")
        if any(st.session_state.get(key, {}).values()):
            st.markdown(":orange[:material/edit: This table is not saved yet.]", width="content")
    if not is_saved:
        return None
    records = edited.astype(object).where(edited.notna(), None).to_dict("records")
    texts = [{k: "" if v is None and k not in ("Points", "Required") else v for k, v in row.items()} for row in records]
    return [row for row in texts if any(row[k] for k in names if k not in ("Points", "Required", "Kind"))]


def _split(options: str) -> list[str]:
    return [part.strip() for part in str(options).split(";") if part.strip()]
