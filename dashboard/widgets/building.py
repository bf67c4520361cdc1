"""Build a study beside the page: live progress, stop, and on from where it was."""

from __future__ import annotations

import streamlit as st

from core.types import Progress
from dashboard.jobs import Job, pool
from dashboard.keys import digest
from dashboard.tasks import Task
from dashboard.widgets.live import POLL_S, told
from dashboard.widgets.messages import escaped
from dashboard.widgets.shelf import Study
from study.building.build import build
from study.building.workers import helpers_here
from study.bundle import Bundle
from study.workspace import home


def show(study: Study) -> None:
    """Whether it is built as its file is now; a button to build it, or how far it is."""
    if study.bundle is None:
        st.info("Not built yet. Building makes every picture and map once and freezes them; it takes about a minute.")
    elif study.changed:
        st.warning("The study file was changed since this study was built. Build it again to use the changes.")
    if study.file is None:
        return
    task = _task(study)
    job = pool().known(task.key)
    if job is not None and job.ended:
        _ended(job)
    if job is None or job.ended:
        label = "Build" if study.bundle is None else "Build again"
        urgent = study.bundle is None or study.changed
        st.button(
            label,
            type="primary" if urgent else "secondary",
            key=f"build_{study.name}",
            help="What is finished already is not made again.",
            on_click=_start,
            args=(task,),
        )
    else:
        _watched(job)


def _ended(job: Job) -> None:
    if job.state == "done":  # maybe only after the page looked for the bundle
        pool().forget(job.key)
        st.rerun()
    if job.state == "failed":
        st.error(escaped(job.error))
    elif job.state == "cancelled":
        st.info("Building was stopped. What is finished is kept; it goes on from there.")


def _watched(job: Job) -> None:
    """How far it is, with a way to stop it; the page once more when it has ended."""

    def part() -> None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.progress(job.share, escaped(told(job)))
            st.button("Stop", key=f"stop_{job.key}", on_click=pool().cancel, args=(job.key,), width=90)
        if job.ended:
            st.rerun()

    st.fragment(part, run_every=POLL_S)()


def _task(study: Study) -> Task:
    """One build of a study at a time, whoever asks for it."""
    assert study.file is not None
    file, folder = study.file, home()

    def work(progress: Progress) -> Bundle:
        return build(file, folder, progress, helpers=helpers_here())

    return Task(digest("build", str(folder), study.name), work)


def _start(task: Task) -> None:
    pool().forget(task.key)
    task.ask()
