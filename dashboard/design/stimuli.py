"""What participants see: the conditions, the heatmap method, the examples, and a preview of one trial."""

from __future__ import annotations

import hashlib

import streamlit as st

from core.attribution import METHODS
from core.attribution.outside.opening import is_external, open_registered
from core.names import format_name
from core.parameters import list_parameters, summary
from core.types import Progress
from dashboard.design.editor import Editor, change, read_now
from dashboard.design.fields import WIDEST, Setting, follow, show, show_all, show_faults
from dashboard.design.schema import Rule, rule_of
from dashboard.design.settings import HEATMAPS, TEACHING
from dashboard.explore.parameters import HIDDEN
from dashboard.shared.keys import digest
from dashboard.shared.live import draw_when_ready, supersede
from dashboard.shared.messages import escape_markdown
from dashboard.shared.screens import draw_screen
from dashboard.shared.tasks import Task
from study.building.preview import TrialPreview, preview_trial
from study.conditions import CONDITIONS, format_condition
from study.participation.screens import lay_out_trial
from study.plan.texts import complete_texts
from study.tasks.task import WordedTask
from study.workspace.workspace import home

PARAMETERS = "saliency.parameters"
MIN_TRIAL = 380
"""Width of a previewed trial, px."""


def show_stimuli(editor: Editor) -> None:
    """Draw the conditions, the settings of heatmaps and examples, and the preview."""
    _choose_conditions(editor)
    st.header("Heatmaps", anchor=False)
    _choose_method(editor)
    show_all(editor, HEATMAPS, 3)
    st.header("Examples", anchor=False)
    show_all(editor, [one for one in TEACHING if one.place not in _list_unused(editor)], 3)
    st.header("Preview", anchor=False)
    _show_preview(editor)


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
        list(dict.fromkeys([*CONDITIONS, *value])),
        format_func=format_condition,
        key=key,
        on_change=write,
        help="Each participant is allocated to one condition.",
    )
    show_faults(editor, "conditions")
    with st.expander("What participants see in each condition"):
        for name in CONDITIONS:
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
    if value not in METHODS or is_external(value):
        return
    method = open_registered(value)
    st.caption(escape_markdown(summary(method)))
    with st.expander("Parameters"):
        grid = st.grid(3, min_column_width=180)
        for parameter in list_parameters(method):
            if parameter.name not in HIDDEN:
                rule: Rule = rule_of(parameter)
                place, meaning = f"{PARAMETERS}.{parameter.name}", escape_markdown(parameter.help)
                names = {choice: format_name(choice) for choice in rule.choices}
                with grid.container():
                    show(editor, Setting(place, format_name(parameter.name), meaning, names), rule)


def _show_preview(editor: Editor) -> None:
    """Show one trial in every condition from the first request on, made again after every change of the file."""
    if editor.config is None:
        st.caption("Correct the study file to see a trial.")
        return
    st.caption(
        "One trial in every condition, as the file would make it now: it follows every change. Nothing is frozen."
    )
    key = f"design.{editor.name}.preview"
    making, numbered = f"{key}.making", f"{key}.number"
    number = int(st.session_state.get(numbered, 0))
    if making not in st.session_state:
        st.button("Preview a trial", key=key, on_click=st.session_state.update, args=({making: ""},))
        return
    st.button("Another category", key=f"{key}.next", on_click=st.session_state.update, args=({numbered: number + 1},))
    path, folder = editor.path, home()

    def work(progress: Progress) -> TrialPreview:
        return preview_trial(path, folder, progress, number=number)

    content = hashlib.sha256(path.read_bytes()).hexdigest()
    task = Task(digest("preview", str(path), content, str(number)), work)
    supersede(task, making)
    draw_when_ready(task, draw_preview, key)


def draw_preview(preview: TrialPreview) -> None:
    """Draw a trial as the participants of each condition see it."""
    config, trial = preview.config, preview.trial
    texts = complete_texts(
        config.language,
        {"title": config.study.title, **config.texts},
        config.saliency.method,
        config.saliency.parameters,
        config.task,
    )
    worded = WordedTask(config.task, texts)
    st.caption(
        f"The AI predicts {escape_markdown(trial.target)} ({trial.ai_probability:.0%}); the true class is "
        f"{escape_markdown(trial.truth)}. Participants do not see "
        f"{'the true class' if config.task.shows_label else 'this'}."
    )
    grid = st.grid(2, min_column_width=MIN_TRIAL)
    for name in config.conditions:
        screen = lay_out_trial("main", trial, CONDITIONS[name], "a", worded).screen
        with grid.container(border=True):
            st.markdown(f"**{format_condition(name)}**")
            draw_screen(screen, preview.asset, texts)
