"""A part of a page that asks for long work: it draws what is ready, and draws again until everything is."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import streamlit as st

from core.errors import ForetellError
from core.names import upper_first
from dashboard.shared.jobs import Job, pool
from dashboard.shared.keys import STARTED_KEY, STOPPED_KEY
from dashboard.shared.messages import escape_markdown, format_message, show_errors
from dashboard.shared.tasks import Task

POLL_S = 0.7
AT_ONCE_S = 0.5
"""Work that is done in this time is shown without a progress bar."""
HESITATE_S = 30.0
"""Work that takes longer starts only after a click."""
PERCENT = 100
"""The progress of so many parts is a percentage."""
MOST_UNKNOWN = 12
"""So many tasks of unknown duration start without a click: the methods of a usual grid."""
Drawn = TypeVar("Drawn")


class JobCollector:
    """What a part of the page asks for while it is put together.

    ``patience`` is how long it waits, s, altogether, for jobs that finish at once.
    """

    def __init__(self, patience: float = 0.0) -> None:
        self.jobs: list[Job] = []
        self.held: list[str] = []
        self.seconds = 0.0
        self.action = "Compute"
        """What the button of work that waits for a click says it does."""
        self._patience = patience
        self._together: set[str] = set()

    def hold_together(self, tasks: Iterable[Task]) -> None:
        """Let tasks wait for one click that would take long with all cheaper ones, although none takes long alone.

        Finished tasks count too: with each that ends, the next would start by itself.
        """
        seconds = {task.key: task.estimate() for task in tasks}
        known = sorted((cost, key) for key, cost in seconds.items() if cost is not None)
        spent = itertools.accumulate(cost for cost, _ in known)
        late = {key for (_, key), total in zip(known, spent, strict=True) if total > HESITATE_S}
        # Until the network's speed is measured nobody knows how long many tasks take: they may not start by themselves.
        unknown = seconds.keys() - {key for _, key in known}
        late |= unknown if len(unknown) > MOST_UNKNOWN else set()
        self._together |= {key for key in late - _keys(STARTED_KEY) if _is_missing(key)}

    def __call__(self, task: Task) -> Job | None:
        """Return the task's job; None if it waits for a click: it was stopped here, or takes long."""
        stays = task.key in self._together or task.key in _keys(STOPPED_KEY)
        if _is_missing(task.key) and (stays or is_held(task)):
            self.held.append(task.key)
            self.seconds += task.seconds or 0.0
            return None
        job = task.ask()
        self.jobs.append(job)
        start = time.monotonic()
        job.wait(max(0.0, self._patience))
        self._patience -= time.monotonic() - start
        return job

    @property
    def running(self) -> list[Job]:
        """Return the jobs that are not finished yet."""
        return [job for job in self.jobs if not job.has_ended]


def draw_live(collect: Callable[[JobCollector], Drawn], draw: Callable[[Drawn], None], name: str = "") -> None:
    """Draw what ``collect`` finds; while jobs are running, draw this part again and again, and then the page once more.

    ``name`` tells this part's buttons from those of another on the page.
    """
    asking = JobCollector(AT_ONCE_S)
    collected = [collect(asking)]
    unfinished = bool(asking.running)

    def part() -> None:
        nonlocal asking
        with show_errors():
            if not collected:  # this part is drawn again without the rest of the page
                asking = JobCollector()
                collected.append(collect(asking))
            _controls(asking, name)
            draw(collected.pop())
        # Start or stop polling; a job that was cancelled after it was collected now waits for a click.
        if unfinished != bool(asking.running) or any(job.state == "cancelled" for job in asking.jobs):
            st.rerun()

    st.fragment(part, run_every=POLL_S if unfinished else None)()


def await_result(job: Job) -> Any:
    """Return the result of a job that the rest of the page needs; None while it runs, with a bar and a stop button.

    Raises
    ------
    ForetellError
        The job failed.
    """
    if not job.has_ended and job.key in _keys(STOPPED_KEY):
        pool().cancel(job.key)  # the page asked for it again
    if job.key in _keys(STOPPED_KEY) and (not job.has_ended or job.state == "cancelled"):
        st.button("Resume", key=f"begin_{job.key}", on_click=begin, args=([job.key],), type="primary")
        return None
    if not job.wait(AT_ONCE_S):

        def part() -> None:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.progress(job.share, escape_markdown(describe_progress(job)))
                st.button("Stop", key=f"stop_{job.key}", on_click=_stop, args=([job.key],), width=90)
            if job.wait(POLL_S):  # do not wait for the browser's next poll
                st.rerun()

        st.fragment(part, run_every=POLL_S)()
        return None
    if job.state == "cancelled":  # it was still ending when the page asked for it again
        st.rerun()
    if job.state == "failed":
        pool().forget(job.key)  # a folder can be corrected
        raise ForetellError(job.error)
    return job.result


def watch(job: Job) -> None:
    """Show the progress of a job with a way to stop it, and draw the page again once it has ended."""

    def part() -> None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.progress(job.share, escape_markdown(describe_progress(job)))
            st.button("Stop", key=f"stop_{job.key}", on_click=pool().cancel, args=(job.key,), width=90)
        if job.has_ended:
            st.rerun()

    st.fragment(part, run_every=POLL_S)()


def _show_error(job: Job) -> None:
    st.error(format_message(job.error))


def draw_when_ready(
    task: Task,
    draw: Callable[[Any], None],
    name: str = "",
    failed: Callable[[Job], None] = _show_error,
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    """Draw the result of one task as soon as it is there; until then its progress, with a stop button.

    ``failed`` draws what takes the result's place where the task failed, ``meanwhile`` what is there before it.
    """

    def collect(asking: JobCollector) -> Job | None:
        return asking(task)

    def part(job: Job | None) -> None:
        if job is not None and job.state == "done":
            draw(job.result)
        elif job is not None and job.state == "failed":
            failed(job)
        else:
            meanwhile()
            st.caption(describe_state(job or pool().find(task.key)))

    draw_live(collect, part, name)


def supersede(task: Task, key: str) -> None:
    """Cancel what this session asked for before under ``key``, unless it is the same work: nobody waits for it now."""
    if st.session_state.get(key) not in (None, task.key):
        pool().cancel(st.session_state[key])
    st.session_state[key] = task.key


def get_result(task: Task, name: str) -> Any:
    """Return the result of one task for the rest of the page; until then draw progress or the error, and return None.

    Widgets drawn from it are outside the polled part, so that a click can open another view.
    """
    draw_when_ready(task, lambda _: None, name)
    job = pool().find(task.key)
    return job.result if job is not None and job.state == "done" else None


def describe_state(job: Job | None) -> str:
    """Return the text shown in place of a missing result."""
    if job is None:
        return "Not computed yet."
    if job.state == "failed":
        return job.error
    if job.state == "cancelled":
        done, total, _ = job.progress
        return f"Stopped at {done:,} of {total:,}." if total else "Stopped."
    return "Computing …" if job.state == "running" else "Waiting …"


def _controls(asking: JobCollector, name: str) -> None:
    """Draw progress bars, each with a stop button, and a button for work that waits for a click."""
    running = asking.running
    for job in running:
        if job.state == "running":
            with st.container(horizontal=True, vertical_alignment="center"):
                st.progress(job.share, escape_markdown(describe_progress(job)))
                st.button("Stop", key=f"stop_{job.key}", on_click=_stop, args=([job.key],), width=90)
    waiting = [job.key for job in running if job.state != "running"]
    with st.container(horizontal=True, vertical_alignment="center"):
        if waiting:
            st.caption(f"{len(waiting)} more waiting", width="content")
        if len(running) > 1 or waiting:
            st.button("Stop all", key=f"stop_all{name}", on_click=_stop, args=([job.key for job in running],))
        if asking.held:
            about = f" ({format_duration(asking.seconds)})" if asking.seconds else ""
            what = "" if len(asking.held) == 1 else f" the {len(asking.held)} missing"
            label = f"{asking.action}{what}{about}"
            st.button(label, key=f"begin{name}", on_click=begin, args=(asking.held,), type="primary")


def describe_progress(job: Job) -> str:
    """Describe the progress of a job and its remaining time."""
    done, total, what = job.progress
    if not total:
        return what or "Starting"
    left = job.remaining_s
    rest = f", {format_duration(left)} left" if left else ""
    amount = f"{done}%" if total == PERCENT else f"{done:,} of {total:,}"
    return f"{upper_first(what)}: {amount}{rest}"


def format_duration(seconds: float) -> str:
    """Format an approximate duration: ``"about 20 s"``, ``"about 3 min"``."""
    if seconds < 1:
        return "less than a second"
    if seconds < 90:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"


def is_held(task: Task) -> bool:
    """Return whether a task waits for a click because it takes long."""
    return _is_missing(task.key) and (task.seconds or 0.0) > HESITATE_S and task.key not in _keys(STARTED_KEY)


def _is_missing(key: str) -> bool:
    known = pool().find(key)
    return known is None or known.state == "cancelled"


def _keys(name: str) -> set[str]:
    return set(st.session_state.get(name, ()))


def _stop(keys: list[str]) -> None:
    for key in keys:
        pool().cancel(key)
    st.session_state[STOPPED_KEY] = sorted(_keys(STOPPED_KEY) | set(keys))
    st.session_state[STARTED_KEY] = sorted(_keys(STARTED_KEY) - set(keys))


def begin(keys: list[str]) -> None:
    """Start long work after a click."""
    st.session_state[STOPPED_KEY] = sorted(_keys(STOPPED_KEY) - set(keys))
    st.session_state[STARTED_KEY] = sorted(_keys(STARTED_KEY) | set(keys))
