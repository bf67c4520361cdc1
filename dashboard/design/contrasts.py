"""The planned contrasts of a study, and the interim analyses of one of them, by widgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from core.errors import ForetellError
from dashboard.design.editor import Editor, change, keep_errors, read_now
from dashboard.design.fields import follow, show_faults
from study.bundle import TRIAL_TYPES, TYPE_LABELS
from study.conditions import format_condition, list_separate_conditions
from study.plan.draft import MISSING

CONTRASTS, STOPPING, PARTICIPANTS = "analysis.contrasts", "analysis.stopping", "analysis.participants"
DEFAULTS = "Each explanation against none, for each trial type"
OWN = "Contrasts of your own"
STEPS = (0.5, 0.75, 1.0)
"""Interim analyses of a new rule, as shares of the planned participants."""
SPENDING = {
    "obrien_fleming": "O'Brien and Fleming (1979): strict at first",
    "pocock": "Pocock (1977): alike at every analysis",
}
MOST_LOOKS = 20


def choose_contrasts(editor: Editor) -> None:
    """Draw the planned contrasts, one row each; without any in the file, the default ones hold."""
    value = editor.draft.get(CONTRASTS)
    rows = [] if value is MISSING else [dict(one) for one in value] if isinstance(value, list) else None
    if rows is None or not all(isinstance(one.get("more"), str) for one in rows):
        st.info("The contrasts are not a list of tables. Correct them under File.")
        show_faults(editor, CONTRASTS)
        return
    key = f"design.{editor.name}.contrasts"
    follow(key, OWN if rows else DEFAULTS)

    def start() -> None:
        chosen = [_make_first(editor)] if st.session_state[key] == OWN else MISSING
        if (read_now(editor.path, CONTRASTS) in (MISSING, [])) == (chosen is MISSING):
            return
        change(editor.path, {CONTRASTS: chosen})

    st.radio("Planned contrasts", (DEFAULTS, OWN), key=key, on_change=start, horizontal=True)
    for i in range(len(rows)):
        _show_contrast(editor, rows, i)
    if rows:
        st.button("Add a contrast", icon=":material/add:", on_click=_write_rows, args=(editor, [*rows, rows[-1]]))
    show_faults(editor, CONTRASTS)


def _show_contrast(editor: Editor, rows: list[dict[str, Any]], i: int) -> None:
    """Draw one contrast with its button to remove it."""

    def write(changed: Mapping[str, Any]) -> None:
        _write_rows(editor, [*rows[:i], rows[i] | dict(changed), *rows[i + 1 :]])

    def remove() -> None:
        _write_rows(editor, [*rows[:i], *rows[i + 1 :]])

    key = f"design.{editor.name}.contrasts.{i}"
    columns = st.columns([2, 2, 3, 1], vertical_alignment="bottom")
    _choose_sides(editor, key, rows[i], write, columns)
    with columns[3]:
        st.button("Remove", key=f"{key}.remove", icon=":material/delete:", help=f"Contrast {i + 1}", on_click=remove)


def _choose_sides(
    editor: Editor,
    key: str,
    contrast: Mapping[str, Any],
    write: Callable[[Mapping[str, Any]], None],
    columns: list[Any],
    *,
    factors_only: bool = False,
) -> None:
    """Draw a contrast's two conditions and its trial types; write what is chosen."""
    separate = set(list_separate_conditions()) if factors_only else set()
    conditions = [name for name in editor.value("conditions") if name not in separate]
    sides = (("more", "Condition", "none"), ("less", "Compared with", "none"))
    for place, (side, label, default) in zip(columns, sides, strict=False):
        value = contrast.get(side, default)
        follow(f"{key}.{side}", value)
        place.selectbox(
            label,
            conditions if value in conditions else [*conditions, value],
            key=f"{key}.{side}",
            format_func=format_condition,
            on_change=lambda side=side: write({side: st.session_state[f"{key}.{side}"]}),
        )
    follow(f"{key}.types", list(contrast.get("trial_types", TRIAL_TYPES)))
    columns[2].multiselect(
        "Trial types",
        TRIAL_TYPES,
        key=f"{key}.types",
        format_func=lambda kind: TYPE_LABELS.get(kind, kind),
        placeholder="of every type",
        on_change=lambda: write({"trial_types": st.session_state[f"{key}.types"] or list(TRIAL_TYPES)}),
    )


def _make_first(editor: Editor) -> dict[str, Any]:
    """Return a contrast to start from: the last condition of the study against none."""
    return {"more": list(editor.value("conditions"))[-1], "less": "none", "trial_types": list(TRIAL_TYPES)}


def _write_rows(editor: Editor, rows: list[dict[str, Any]]) -> None:
    change(editor.path, {CONTRASTS: rows or MISSING})


def choose_stopping(editor: Editor) -> None:
    """Draw the interim analyses: whether there are any, their sizes, their bounds and the contrast they test."""
    value = editor.draft.get(STOPPING)
    key = f"design.{editor.name}.stopping"
    follow(key, value is not MISSING)

    def write() -> None:
        if (read_now(editor.path, STOPPING) is not MISSING) == st.session_state[key]:
            return
        planned = _plan_looks(int(editor.value("allocation.per_condition")))
        change(editor.path, planned if st.session_state[key] else dict.fromkeys(planned, MISSING))

    st.toggle("Interim analyses can end the collection", key=key, on_change=write)
    if isinstance(value, dict):
        _show_schedule(editor, key, value)
    show_faults(editor, STOPPING)


def _plan_looks(people: int) -> dict[str, Any]:
    looks = sorted({max(2, round(share * people)) for share in STEPS})
    return {STOPPING: {"looks": looks, "contrast": {"more": "both"}}, PARTICIPANTS: looks[-1]}


def _show_schedule(editor: Editor, key: str, rule: Mapping[str, Any]) -> None:
    """Draw the sizes, the rule and the contrast of interim analyses."""

    def write(changed: Mapping[str, Any], more: Mapping[str, Any] | None = None) -> None:
        change(editor.path, {STOPPING: dict(rule) | dict(changed), **(more or {})})

    sizes, bounds = st.columns(2)
    with sizes:
        _choose_sizes(f"{key}.looks", rule, write)
    with bounds:
        _choose_spending(f"{key}.spending", rule, write)
    contrast = dict(rule.get("contrast", {"more": "both"}))

    def write_contrast(changed: Mapping[str, Any]) -> None:
        write({"contrast": contrast | dict(changed)})

    _choose_sides(editor, f"{key}.contrast", contrast, write_contrast, st.columns([2, 2, 3]), factors_only=True)


def _choose_sizes(key: str, rule: Mapping[str, Any], write: Callable[..., None]) -> None:
    """Draw the sizes of the interim analyses; the last is also the planned number of participants."""
    follow(key, ", ".join(str(look) for look in rule.get("looks", ())))

    def write_looks() -> None:
        with keep_errors():
            looks = _read_looks(st.session_state[key])
            write({"looks": looks}, {PARTICIPANTS: looks[-1]})

    st.text_input(
        "Participants per condition at each analysis",
        key=key,
        on_change=write_looks,
        help="Whole numbers from 2, with commas, in increasing order; the last is the planned end.",
    )


def _choose_spending(key: str, rule: Mapping[str, Any], write: Callable[..., None]) -> None:
    follow(key, rule.get("spending", "obrien_fleming"))
    st.selectbox(
        "Bounds",
        list(SPENDING),
        key=key,
        format_func=lambda name: SPENDING.get(name, name),
        on_change=lambda: write({"spending": st.session_state[key]}),
    )


def _read_looks(text: str) -> list[int]:
    """Read the sizes of interim analyses.

    Raises
    ------
    ForetellError
        They are no increasing whole numbers from 2.
    """
    parts = [part.strip() for part in text.replace(";", ",").split(",") if part.strip()]
    looks = [int(part) for part in parts if part.isdecimal()]
    if len(looks) < len(parts) or not looks or looks != sorted(set(looks)) or looks[0] < 2 or len(looks) > MOST_LOOKS:
        raise ForetellError(
            f"{text!r} are not sizes of interim analyses: give 1 to {MOST_LOOKS} whole numbers from 2, in increasing "
            "order, with commas."
        )
    return looks
