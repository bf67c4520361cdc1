"""The demo study, which is prepared in the background after the first start, and how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable

import streamlit as st

from core.types import Progress
from dashboard.shared import links, service
from dashboard.shared.jobs import Job, pool
from dashboard.shared.keys import build_key
from dashboard.shared.live import POLL_S, describe_progress, format_duration
from dashboard.shared.messages import escape_markdown, format_message
from dashboard.shared.tasks import Task
from study import demo
from study.collection.access.permissions import Permission
from study.workspace.workspace import home

HEAD_START_S = 4.0
"""How long the first page and its first heatmap have the processor to themselves."""
AGAIN = "Start Foretell again to continue: finished parts are kept."


def start() -> Job | None:
    """Return the job that prepares the demo in the background, started now; None if that is done already."""
    folder = home()
    if demo.is_ready(service.get_service(), folder):
        return None

    def work(progress: Progress) -> None:
        time.sleep(HEAD_START_S)
        demo.prepare_apart(folder, progress)

    return Task(build_key(folder, demo.NAME), work).ask()  # the page Studies builds a study under the same key


def find_job() -> Job | None:
    """Find the work on the demo that is under way or went wrong, if this login may see the study."""
    if not service.get_acting_researcher().may(Permission.PREVIEW, demo.NAME):
        return None
    job = pool().find(build_key(home(), demo.NAME))
    return None if job is None or job.state in ("done", "cancelled") else job


def show_progress(above: Callable[[], None] = lambda: None) -> None:
    """Draw how far the demo is, again and again until it is ready, and then the page once more.

    ``above`` draws, each time, what is there already; without work on the demo it is all that is drawn.
    """
    job = find_job()
    if job is None or job.has_ended:
        above()
        if job is not None and job.state == "failed":
            st.error(f"The demo study is not ready. {format_message(job.error)} {AGAIN}")
        return

    def part() -> None:
        with st.container(border=True, key="demo_progress"):
            above()
            _draw_progress(job)
        if job.has_ended:
            st.rerun()

    st.fragment(part, run_every=POLL_S)()


def _draw_progress(job: Job) -> None:
    left = job.remaining_s
    rest = f": {format_duration(left)} left" if left else ""
    st.markdown(f"**The demo study is being prepared**{rest}")
    st.progress(job.share, escape_markdown(describe_progress(job).partition(": ")[0]))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("It goes on in the background. Meanwhile:", width="content")
        for page in ("Explore", "Design", "Power"):
            links.show_link(page, page.lower(), place="demo")
