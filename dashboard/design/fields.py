"""A widget for each setting of a study file: it shows what the file says and writes what is chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from core.names import upper_first
from dashboard.design.editor import Editor, change, read_now
from dashboard.design.schema import FieldRule, rule_at
from dashboard.shared.messages import escape_markdown
from study.plan.draft import MISSING, StudyDraft
from study.plan.translation import translate_template

NARROWEST, WIDEST = 200, 600
"""Width of a column, px: a phone has one; and of a field of one line."""
SWITCHED = ("trials.strata", "blocks", "adaptive", "sittings")
"""Tables that a toggle adds to the file and removes."""
DEVIATING = ("analysis.priors", "analysis.means")
"""Tables of which the file has only what differs from the defaults: it then shows what was chosen."""


@dataclass(frozen=True)
class Setting:
    """One setting: its place in the file, what it is called, and what its choices are called.

    ``lines`` is the height of a text in lines; a list is written one entry a line.
    ``placeholder`` is what holds while the field is empty.
    """

    place: str
    label: str
    help: str = ""
    names: Mapping[Any, str] = field(default_factory=dict)
    options: tuple[Any, ...] = ()
    lines: int = 1
    placeholder: str = ""


def show_all(editor: Editor, settings: Iterable[Setting], columns: int = 1) -> None:
    """Draw the widgets of several settings, side by side; in this order also where a narrow screen has one column."""
    grid = st.grid(columns, min_column_width=NARROWEST)
    for setting in settings:
        with grid.container():
            show(editor, setting)


def show(editor: Editor, setting: Setting, rule: FieldRule | None = None) -> Any:
    """Draw the widget of one setting, and what is wrong with it; return the value in the file."""
    rule = rule or rule_at(setting.place)
    entry = editor.draft.get(setting.place)
    value = rule.default if entry is MISSING else entry
    key = f"design.{editor.name}.{setting.place}"
    options: dict[str, Any] = {
        "key": key,
        "help": setting.help or None,
        "on_change": _write,
        "args": (editor, setting.place, key, rule.kind),
    }
    try:
        _draw(setting, rule, value, options)
    except (TypeError, ValueError):
        st.text_input(setting.label, str(value), disabled=True, help="Correct it under File.")
    show_faults(editor, setting.place)
    return value


def toggle_table(editor: Editor, place: str, first: Mapping[str, Any], label: str, explained: str) -> bool:
    """Draw a switch for an optional table of the study file, which begins as ``first``; return whether it is there."""
    key = f"design.{editor.name}.{place.rpartition('.')[2]}"
    is_there = editor.draft.get(place) is not MISSING
    follow(key, is_there)

    def switch() -> None:
        chosen = dict(first) if st.session_state[key] else MISSING
        if (read_now(editor.path, place) is MISSING) == (chosen is MISSING):
            return
        change(editor.path, {place: chosen})

    st.toggle(label, key=key, on_change=switch, help=explained)
    return is_there


def show_faults(editor: Editor, place: str) -> None:
    """Draw what is wrong at a place, under its widget."""
    for text in editor.faults_at(place):
        st.caption(f":red[{escape_markdown(upper_first(text))}]")


def follow(key: str, value: Any) -> None:
    """Show a value of the file in a widget, unless it shows it already.

    What is set is sent to the browser: sent by a run that began before a change, the former value would take the
    change's place there, and the next run would write it into the file.
    """
    if st.session_state.get(key, MISSING) != value:
        st.session_state[key] = value


def _draw(setting: Setting, rule: FieldRule, value: Any, options: dict[str, Any]) -> None:
    choices = setting.options or rule.choices
    key, named = options["key"], setting.names

    def name(choice: Any) -> str:
        return str(named.get(choice, choice))

    if choices:
        follow(key, value)
        offered = choices if value in choices else (*choices, value)
        st.selectbox(setting.label, offered, format_func=name, width=WIDEST, **options)
    elif rule.kind == "boolean":
        follow(key, bool(value))
        st.toggle(setting.label, **options)
    elif rule.kind in ("integer", "number"):
        _draw_number(setting, rule, value, options)
    elif rule.kind == "array":
        follow(key, "\n".join(value or ()))
        height = 30 + 28 * max(3, setting.lines)
        st.text_area(setting.label, height=height, placeholder=setting.placeholder or None, **options)
    elif setting.lines > 1:
        follow(key, str(value or ""))
        st.text_area(setting.label, height=30 + 28 * setting.lines, **options)
    else:
        follow(key, str(value or ""))
        st.text_input(setting.label, width=WIDEST, **options)


def _draw_number(setting: Setting, rule: FieldRule, value: Any, options: dict[str, Any]) -> None:
    """Draw a field of a number.

    Raises
    ------
    TypeError, ValueError
        It is no number, or outside the limits: Streamlit would show the lower limit in its place.
    """
    kind = int if rule.kind == "integer" else float
    form: dict[str, Any] = {"step": 1} if kind is int else {"format": "%g"}
    for name, limit in (("min_value", rule.least), ("max_value", rule.most)):
        if limit is not None:
            form[name] = kind(limit)
    if value is not None and not form.get("min_value", value) <= value <= form.get("max_value", value):
        raise ValueError(f"{value} is outside the limits.")
    if rule.optional:  # a field that may be emptied again
        form |= {"value": None, "placeholder": "not set"}
    follow(options["key"], None if value is None else kind(value))
    st.number_input(setting.label, width=WIDEST, **form, **options)


def _write(editor: Editor, place: str, key: str, kind: str) -> None:
    """Write what a widget says; an emptied one leaves the setting out, and the template's texts follow the language.

    A widget of a table that was switched off can be sent once more by the browser: it must not bring the table back.
    """
    table = place.rpartition(".")[0]
    if table in SWITCHED and read_now(editor.path, table) is MISSING:
        return
    value: Any = st.session_state[key]
    if kind == "array" and isinstance(value, str):
        value = [line.strip() for line in value.splitlines() if line.strip()]
    if table in DEVIATING and value == rule_at(place).default:
        value = None
    translated = translate_template(StudyDraft.read(editor.path), value) if place == "language" else {}
    change(editor.path, {place: MISSING if value is None else value, **translated})
