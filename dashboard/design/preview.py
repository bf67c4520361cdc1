"""One trial in every condition, as the study file would make it now."""

from __future__ import annotations

import hashlib

import streamlit as st

from core.types import Progress
from dashboard.design import build_check
from dashboard.design.editor import Editor
from dashboard.design.tasks import asks_attributes, asks_units
from dashboard.shared.keys import digest
from dashboard.shared.live import POLL_S, draw_when_ready, supersede
from dashboard.shared.messages import escape_markdown
from dashboard.shared.screens import draw_screen
from dashboard.shared.tasks import Task
from study.attributes.sets import find_used, name_set, write_set
from study.building.check import StudyCheck
from study.building.preview import TrialPreview, preview_trial
from study.bundle import Trial
from study.conditions import CONDITIONS, format_condition
from study.participation.screens import lay_out_trial
from study.plan.texts import complete_texts
from study.tasks.task import WordedTask
from study.workspace.parallel import workers_here
from study.workspace.workspace import home

MIN_TRIAL = 300
"""Width of a previewed trial, px."""


def show_preview(editor: Editor) -> None:
    """Show one trial in every condition, made again after every change; what takes long waits for a click."""
    if editor.config is None:
        st.caption("Correct the study file to see a trial.")
        return
    checked = build_check.find_checked(editor)
    if checked is None or checked.seconds is None:
        _await_check(editor, checked)
        return
    key = f"design.{editor.name}.preview"
    number = int(st.session_state.get(key, 0))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("As the file would make it now; it follows every change.", width="content")
        label = "Another grid" if asks_attributes(editor) else "Another category"
        label = "Another unit" if asks_units(editor) else label
        st.button(label, key=f"{key}.next", on_click=st.session_state.update, args=({key: number + 1},))
    task = _make_task(editor, number, checked)
    supersede(task, f"{key}.making")
    draw_when_ready(task, draw_preview, key)


def _await_check(editor: Editor, before: StudyCheck | None) -> None:
    """Say what a trial waits for, and draw the page again once another check has ended."""

    def part() -> None:
        if build_check.find_checked(editor) is not before:
            st.rerun()
        st.caption("A trial is shown here as soon as the check at the top of this page finds that there can be one.")

    st.fragment(part, run_every=POLL_S if build_check.is_checking(editor) else None)()


def _make_task(editor: Editor, number: int, checked: StudyCheck) -> Task:
    path, folder = editor.path, home()

    def work(progress: Progress) -> TrialPreview:
        return preview_trial(path, folder, progress, number=number)

    content = hashlib.sha256(path.read_bytes()).hexdigest()
    practice = 0 if editor.config is None else editor.config.trials.practice
    seconds = (checked.seconds or 0.0) * workers_here() / max(checked.trials + practice, 1)
    return Task(digest("preview", str(path), content, str(number)), work, lambda: seconds)


def describe_trial(trial: Trial, worded: WordedTask) -> str:
    """Say what the AI makes of a trial, and what of it participants do not see."""
    if trial.unit is not None:
        left, right = trial.unit.activations
        if worded.task.is_written:
            return (
                f"Unit {escape_markdown(trial.unit.name)}: its mean activation is {left:.3g} for the images that "
                f"activate it least and {right:.3g} for those that activate it most. Participants do not see this."
            )
        return (
            f"Unit {escape_markdown(trial.unit.name)}: its activation is {left:.3g} for the image on the left and "
            f"{right:.3g} for that on the right. Participants do not see this."
        )
    if trial.attributes is not None:
        used = name_set(trial.attributes, write_set(find_used(trial.attributes)))
        return f"The AI uses {escape_markdown(', '.join(used))}. Participants do not see this."
    task = worded.task
    unseen = "the heatmap" if task.place else "the true class" if task.shows_label else "this"
    return (
        f"The AI predicts {escape_markdown(trial.target)} ({trial.ai_probability:.0%}); the true class is "
        f"{escape_markdown(trial.truth)}. Participants do not see {unseen}."
    )


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
    st.caption(describe_trial(trial, worded))
    if config.task.steps > 1:
        st.caption(
            "First they see the image and the two names alone; what follows is shown after their first response."
        )
    grid = st.grid(2, min_column_width=MIN_TRIAL)
    for name in config.conditions:
        screen = lay_out_trial("main", trial, CONDITIONS[name], "a", worded).screen
        with grid.container(border=True):
            st.markdown(f"**{format_condition(name)}**")
            draw_screen(screen, preview.asset, texts)
