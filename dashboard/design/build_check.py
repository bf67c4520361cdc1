"""Whether the study can be built as its file is now: checked with the network again after every change of the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.types import Progress
from dashboard.design import steps
from dashboard.design.editor import Editor
from dashboard.design.network import is_here
from dashboard.shared.jobs import Job, pool
from dashboard.shared.keys import digest
from dashboard.shared.live import HESITATE_S, POLL_S, describe_progress, format_duration, supersede
from dashboard.shared.messages import escape_markdown, format_message
from dashboard.shared.tasks import Task
from dashboard.studies import building
from study.building.categories import count_of
from study.building.check import StudyCheck, check
from study.workspace.parallel import workers_here
from study.workspace.workspace import home

IRRELEVANT: Mapping[str, Any] = {
    **dict.fromkeys(("texts", "contact", "consent", "check", "recruiter", "pay", "device", "keys", "language"), True),
    "study": {"title"},
}
"""Settings that change nothing of what a check finds; the file itself is checked for them as it is typed."""


def show_state(editor: Editor, *, is_saved: bool = True, is_built: bool = False) -> None:
    """Check the study as the file is now, show whether it can be built, and mark the steps that are complete.

    What takes long waits for a click.

    Where the last change is not in the file (``is_saved`` false), it says that it speaks of the saved file.
    """
    if editor.config is None:
        steps.show_marks(editor, None, is_built=False)
        return
    job = _ask(editor)
    polled = job is not None and not job.has_ended

    def part() -> None:
        now = _ask(editor)
        _draw_state(editor, now, is_saved=is_saved)
        steps.show_marks(editor, find_checked(editor), is_built=is_built)
        if now is not None and not now.has_ended and not polled:  # after a click on Check nothing is being typed
            st.rerun()

    st.fragment(part, run_every=POLL_S if polled else None)()


def show_report(editor: Editor) -> None:
    """Show what the images allow: of the last change, or until its check has ended of the one before."""
    st.fragment(lambda: _draw_report(editor), run_every=POLL_S if is_checking(editor) else None)()


def is_checking(editor: Editor) -> bool:
    """Whether a check of the study runs now."""
    running = pool().find(st.session_state.get(_key(editor, "running"), ""))
    return running is not None and not running.has_ended


def find_checked(editor: Editor) -> StudyCheck | None:
    """Return what the last check found; None before one ended."""
    job = _find_last(editor)
    return job.result if job is not None else None


def _ask(editor: Editor) -> Job | None:
    """Check the file as it is now; None where that would download a network that nobody has asked for yet.

    The page is not drawn again when the check ends, only what it says: that would replace what is being typed.
    """
    assert editor.config is not None
    if not _was_asked(editor) and not is_here(editor.config.classifier.model):
        return None
    task = _make_task(editor)
    supersede(task, _key(editor, "running"))
    job = task.ask()
    if job.has_ended:
        st.session_state[_key(editor, "ended")] = task.key
    return job


def _draw_state(editor: Editor, job: Job | None, *, is_saved: bool) -> None:
    if job is None:
        assert editor.config is not None
        _offer_check(editor, f"{editor.config.classifier.model} is not on this machine. The check downloads it.")
    elif job.has_ended:
        _show_outcome(editor, job, is_saved=is_saved)
    else:
        before = _find_last(editor)
        if before is not None:
            building.show_obstacles(before.result)  # until it is known that the change removed them
        progress = escape_markdown(describe_progress(job))
        st.markdown(f":gray[:material/hourglass_empty: Checking whether the study can be built. {progress}.]")


def _draw_report(editor: Editor) -> None:
    job = _find_last(editor)
    if job is None:
        st.caption("It is shown here as soon as the check at the top of this page has ended.")
        return
    if editor.config is not None:
        building.show_images(job.result)
    st.button(
        "Check again",
        key=_key(editor, "again"),
        help="For images or a network that have changed since: the check follows the study file alone.",
        on_click=_check_again,
        args=(editor,),
    )


def _make_task(editor: Editor) -> Task:
    assert editor.config is not None
    path, folder, patience = editor.path, home(), float("inf") if _was_asked(editor) else HESITATE_S
    settings = editor.config.model_dump_json(exclude=dict(IRRELEVANT))

    def work(progress: Progress) -> StudyCheck:
        return check(path, folder, progress, workers=workers_here(), patience_s=patience)

    return Task(digest("study check", str(folder), str(path), settings, str(patience)), work)


def _show_outcome(editor: Editor, job: Job, *, is_saved: bool) -> None:
    """Show in a line whether the study can be built, or in a box what prevents it."""
    if job.state != "done":
        if job.error:
            st.error(format_message(job.error))
        _offer_check(editor, "Once that is corrected, check again." if job.error else "The check was stopped.")
        return
    checked: StudyCheck = job.result
    if checked.obstacles:
        building.show_obstacles(checked)
    elif checked.postponed:
        _offer_check(editor, checked.postponed)
    else:
        about = f"{format_duration(checked.seconds or 0.0)} to build"
        trials = count_of(checked.trials, "trial")
        figures = "." if checked.doubts else f": {trials}, {about}."
        st.markdown(f"{building.describe_state(checked, 'study' if is_saved else 'saved file')}{figures}")
        building.show_doubts(checked)
    _show_warnings(editor, checked)


def _show_warnings(editor: Editor, checked: StudyCheck) -> None:
    """Show in a fold, on every section, what makes the study worse than its file says."""
    warnings = building.list_warnings(checked, editor.config) if editor.config is not None else []
    if warnings:
        with st.expander(f":orange[:material/warning: {count_of(len(warnings), 'warning')}]"):
            for line in warnings:
                st.warning(format_message(line))


def _find_last(editor: Editor) -> Job | None:
    """Return the last check that ended with a result."""
    job = pool().find(st.session_state.get(_key(editor, "ended"), ""))
    return job if job is not None and job.state == "done" else None


def _offer_check(editor: Editor, reason: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f":gray[:material/help: {format_message(reason)}]", width="content")
        st.button("Check", key=_key(editor, "check"), on_click=_check_again, args=(editor,))


def _check_again(editor: Editor) -> None:
    """Check whatever it takes, from now on after every change too."""
    st.session_state[_key(editor, "asked")] = True
    pool().forget(_make_task(editor).key)


def _was_asked(editor: Editor) -> bool:
    return bool(st.session_state.get(_key(editor, "asked")))


def _key(editor: Editor, name: str) -> str:
    return f"design.{editor.name}.check.{name}"
