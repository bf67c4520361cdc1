"""A part of the page that asks for long work, draws what is there, and draws again until all is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import streamlit as st

from core.errors import ForetellError
from core.types import Progress
from dashboard.shared.jobs import Job, pool
from dashboard.shared.keys import BEGUN, STOPPED
from dashboard.shared.messages import errors_shown, escaped

POLL_S = 0.7
AT_ONCE_S = 0.5
"""What is made in this time is simply there."""
HESITATE_S = 30.0
"""A map that takes longer is begun by a click."""
Drawn = TypeVar("Drawn")


class Request(Protocol):
    """What `dashboard.explore.heatmap_jobs` offers to ask for."""

    @property
    def key(self) -> str: ...
    @property
    def seconds(self) -> float | None: ...
    def ask(self) -> Job: ...
    def compute(self, progress: Progress) -> object: ...


class Asking:
    """What a part of the page asks for while it is put together."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.held: list[str] = []
        self.seconds = 0.0

    def __call__(self, request: Request) -> Job | None:
        """The request's job; None where it waits for a click: it was stopped here, or takes long."""
        known = pool().known(request.key)
        if known is None or known.state == "cancelled":
            seconds = request.seconds or 0.0
            stopped, long = request.key in _keys(STOPPED), seconds > HESITATE_S and request.key not in _keys(BEGUN)
            if stopped or long:
                self.held.append(request.key)
                self.seconds += seconds
                return None
        job = request.ask()
        self.jobs.append(job)
        return job

    @property
    def running(self) -> list[Job]:
        """What is not finished yet."""
        return [job for job in self.jobs if not job.ended]


def live(collect: Callable[[Asking], Drawn], draw: Callable[[Drawn], None], name: str = "") -> None:
    """Draw what ``collect`` finds; as long as something is being made, again and again, and then the page once more.

    ``name`` tells this part's buttons from those of another on the page.
    """
    first = Asking()
    collect(first)
    deadline = time.monotonic() + AT_ONCE_S
    for job in first.jobs:
        job.wait(max(0.0, deadline - time.monotonic()))
    again = Asking()
    collect(again)
    unfinished = bool(again.running)

    def part() -> None:
        asking = Asking()
        with errors_shown():
            found = collect(asking)
            _controls(asking, name)
            draw(found)
        if unfinished != bool(asking.running):  # begin to look again and again, or leave off
            st.rerun()

    st.fragment(part, run_every=POLL_S if unfinished else None)()


def awaited(job: Job) -> Any:
    """What comes of a job that the rest of the page needs; None while it is made, with a bar and a way to stop it.

    Raises
    ------
    ForetellError
        Nothing came of it.
    """
    if not job.ended and job.key in _keys(STOPPED):
        pool().cancel(job.key)  # the page asked for it anew
    if job.key in _keys(STOPPED) and (not job.ended or job.state == "cancelled"):
        st.button("Go on", key=f"begin_{job.key}", on_click=begin, args=([job.key],), type="primary")
        return None
    if not job.wait(AT_ONCE_S):

        def part() -> None:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.progress(job.share, escaped(told(job)))
                st.button("Stop", key=f"stop_{job.key}", on_click=_stop, args=([job.key],), width=90)
            if job.wait(POLL_S):  # not only looked at when the browser asks: what is there is drawn at once
                st.rerun()

        st.fragment(part, run_every=POLL_S)()
        return None
    if job.state == "failed":
        pool().forget(job.key)  # a folder can be mended
        raise ForetellError(job.error)
    return job.result


def shown(request: Request, draw: Callable[[Any], None], name: str = "") -> None:
    """Draw what comes of one request as soon as it is there, and until then how far it is, with a way to stop it."""

    def collect(asking: Asking) -> Job | None:
        return asking(request)

    def part(job: Job | None) -> None:
        if job is not None and job.state == "done":
            draw(job.result)
        elif job is not None and job.state == "failed":
            st.error(escaped(job.error))
        else:
            st.caption(note(job))

    live(collect, part, name)


def finished(request: Request, name: str) -> Any:
    """What comes of one request, for the rest of the page; None until it is there, with its progress or its error.

    What is drawn of it outside of the part that is drawn again and again can lead to another view by a click.
    """
    shown(request, lambda _: None, name)
    job = pool().known(request.key)
    return job.result if job is not None and job.state == "done" else None


def note(job: Job | None) -> str:
    """What stands where something is not there yet."""
    if job is None:
        return "Not made yet."
    if job.state == "failed":
        return job.error
    return "Being made …" if job.state == "running" else "Waiting …"


def _controls(asking: Asking, name: str) -> None:
    """Bars of what runs, each with a way to stop it; a button for what waits for a click."""
    running = asking.running
    for job in running:
        if job.state == "running":
            with st.container(horizontal=True, vertical_alignment="center"):
                st.progress(job.share, escaped(told(job)))
                st.button("Stop", key=f"stop_{job.key}", on_click=_stop, args=([job.key],), width=90)
    waiting = [job.key for job in running if job.state != "running"]
    with st.container(horizontal=True, vertical_alignment="center"):
        if waiting:
            st.caption(f"{len(waiting)} more waiting", width="content")
        if len(running) > 1 or waiting:
            st.button("Stop all", key=f"stop_all{name}", on_click=_stop, args=([job.key for job in running],))
        if asking.held:
            about = f" ({duration(asking.seconds)})" if asking.seconds else ""
            what = "it" if len(asking.held) == 1 else f"the {len(asking.held)} that are not there"
            st.button(f"Make {what}{about}", key=f"begin{name}", on_click=begin, args=(asking.held,), type="primary")


def told(job: Job) -> str:
    """How far a job is, and how long it takes yet."""
    done, total, what = job.progress
    if not total:
        return "Beginning"
    left = job.remaining_s
    rest = f", {duration(left)} left" if left is not None else ""
    return f"{what[:1].upper()}{what[1:]}: {done:,} of {total:,}{rest}"


def duration(seconds: float) -> str:
    """About how long, in words: ``"about 20 s"``, ``"about 3 min"``."""
    if seconds < 1:
        return "less than a second"
    if seconds < 90:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"


def _keys(name: str) -> set[str]:
    return set(st.session_state.get(name, ()))


def _stop(keys: list[str]) -> None:
    for key in keys:
        pool().cancel(key)
    st.session_state[STOPPED] = sorted(_keys(STOPPED) | set(keys))
    st.session_state[BEGUN] = sorted(_keys(BEGUN) - set(keys))


def begin(keys: list[str]) -> None:
    """Let long work begin: for a button's click."""
    st.session_state[STOPPED] = sorted(_keys(STOPPED) - set(keys))
    st.session_state[BEGUN] = sorted(_keys(BEGUN) | set(keys))
