"""What participants see: the conditions, the heatmap method and the examples."""

from __future__ import annotations

import streamlit as st

from core.attribution import METHODS
from core.attribution.outside.opening import is_external, open_registered
from core.names import format_name
from core.parameters import list_parameters, summary
from dashboard.design.editor import Editor, change, read_now
from dashboard.design.fields import WIDEST, Setting, follow, show, show_all, show_faults
from dashboard.design.schema import FieldRule, rule_of
from dashboard.design.settings import HEATMAPS, LEARNER, TEACHING, WITHIN
from dashboard.design.tasks import asks_attributes, asks_units, list_conditions
from dashboard.explore.parameters import HIDDEN
from dashboard.shared.messages import escape_markdown
from study.conditions import CONDITIONS, format_condition

PARAMETERS = "saliency.parameters"


def show_stimuli(editor: Editor) -> None:
    """Draw the conditions, and the settings of heatmaps and examples."""
    _choose_conditions(editor)
    if asks_units(editor):
        return
    st.header("Heatmaps", anchor=False)
    _choose_method(editor)
    show_all(editor, HEATMAPS, 2)
    if asks_attributes(editor):
        return
    st.header("Examples", anchor=False)
    unused = _list_unused(editor)
    show_all(editor, [one for one in TEACHING if one.place not in unused], 2)
    with st.expander("Advanced"):
        show_all(editor, [one for one in LEARNER if one.place not in unused], 2)


def _list_unused(editor: Editor) -> set[str]:
    """List the settings of examples that the others leave without effect: a prior file has its own damping."""
    unused = {"teaching.threshold"} if editor.value("teaching.policy") != "first" else set()
    return unused | ({"teaching.damping"} if editor.value("teaching.prior") is not None else set())


def _choose_conditions(editor: Editor) -> None:
    key = f"design.{editor.name}.conditions"
    value = list(editor.value("conditions") or ())
    follow(key, value)

    def write() -> None:
        chosen = sorted(st.session_state[key], key=list(CONDITIONS).index)
        change(editor.path, {"conditions": chosen})

    st.multiselect(
        "Conditions",
        list(dict.fromkeys([*list_conditions(editor), *value])),
        format_func=format_condition,
        key=key,
        on_change=write,
        help="Each participant is allocated to one condition, unless they see all.",
    )
    show_faults(editor, "conditions")
    show(editor, WITHIN)
    with st.expander("What participants see in each condition"):
        for name in list_conditions(editor):
            st.markdown(f"**{format_condition(name)}**: {escape_markdown(CONDITIONS.describe(name))}")


def _choose_method(editor: Editor) -> None:
    """Choose the heatmap method and its parameters; another method begins with its own defaults."""
    key = f"design.{editor.name}.method"
    value = str(editor.value("saliency.method"))
    follow(key, value)

    def write() -> None:
        if read_now(editor.path, "saliency.method") == st.session_state[key]:
            return  # its parameters stay
        change(editor.path, {"saliency.method": st.session_state[key], PARAMETERS: {}})

    st.selectbox(
        "Heatmap method",
        list(dict.fromkeys([*METHODS, value])),
        format_func=format_name,
        key=key,
        on_change=write,
        accept_new_options=True,
        width=WIDEST,
        help="A registered method, or type FILE.py:function or heatmaps:FOLDER for your own.",
    )
    if value in METHODS and not is_external(value):
        _show_parameters(editor, value)


def _show_parameters(editor: Editor, name: str) -> None:
    """Draw what a registered method computes, and its parameters."""
    method = open_registered(name)
    st.caption(escape_markdown(summary(method)))
    with st.expander("Parameters"):
        grid = st.grid(3, min_column_width=180)
        for parameter in list_parameters(method):
            if parameter.name not in HIDDEN:
                rule: FieldRule = rule_of(parameter)
                place, meaning = f"{PARAMETERS}.{parameter.name}", escape_markdown(parameter.help)
                names = {choice: format_name(choice) for choice in rule.choices}
                with grid.container():
                    show(editor, Setting(place, format_name(parameter.name), meaning, names), rule)
