"""The messages of a run of a page, with Streamlit's own session and script runner."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime import Runtime, RuntimeConfig
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.script_data import ScriptData
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequestType
from streamlit.runtime.state import SessionState

import dashboard.app  # noqa: F401 - it prepares the sessions

SCRIPT = """
import streamlit as st

@st.fragment(run_every=5)
def polled():
    st.text("polled")

polled()
if st.button("Act", key="act"):
    st.text("the act is done")
"""
PATIENCE_S = 300
HELD_S = 1.0
"""So long a run waits for a click that cannot come before it has ended."""


async def wait_until_ended(session: AppSession) -> None:
    """Wait for the end of a run and of its messages."""
    deadline = time.monotonic() + PATIENCE_S
    while session._scriptrunner is not None:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def open_page(script: Path) -> tuple[AppSession, list[ForwardMsg]]:
    """Open a page; return its session and what it has drawn."""
    session = AppSession(ScriptData(str(script), False), MemoryUploadedFileManager("/upload"), ScriptCache(), None, {})
    session.request_rerun(None)
    await wait_until_ended(session)
    return session, session._browser_queue.flush()


def click_button(drawn: list[ForwardMsg]) -> ClientState:
    """Return what the browser sends when the page's button is clicked."""
    (button,) = [m.delta.new_element.button.id for m in drawn if m.delta.new_element.WhichOneof("type") == "button"]
    click = ClientState()
    click.widget_states.widgets.append(WidgetState(id=button, trigger_value=True))
    return click


def read_texts(session: AppSession) -> list[str]:
    """Return the texts that the browser has been sent since it was last asked."""
    sent = [m.delta.new_element.text.body for m in session._browser_queue.flush()]
    return [text for text in sent if text]


async def click_while_polled(script: Path) -> list[str]:
    """Click, and let the timer ask after the run of the click has ended and before its messages are handled.

    Return the texts that the browser is sent after the click.
    """
    session, drawn = await open_page(script)
    (fragment,) = {m.delta.fragment_id for m in drawn if m.delta.fragment_id}
    session.request_rerun(click_button(drawn))
    runner = session._scriptrunner
    assert runner is not None
    deadline = time.monotonic() + PATIENCE_S
    while runner._requests._state != ScriptRequestType.STOP:  # the loop is held meanwhile, as on a busy machine
        assert time.monotonic() < deadline
        time.sleep(0.01)
    session.request_rerun(ClientState(fragment_id=fragment, is_auto_rerun=True))
    await asyncio.sleep(0)
    await wait_until_ended(session)
    return read_texts(session)


async def click_at_the_end_of_a_run(script: Path, patch: pytest.MonkeyPatch) -> list[str]:
    """Click while a run that cannot be interrupted any more ends: it is held as on a busy machine.

    The click's own run is held as well, after it has taken the click and before its script.
    """
    session, drawn = await open_page(script)
    is_ending, has_click, has_ended = Event(), Event(), Event()
    end, begin = SessionState.on_script_finished, SessionState.on_script_will_rerun

    def end_late(*given: Any, **named: Any) -> None:
        patch.setattr(SessionState, "on_script_finished", end)
        is_ending.set()
        has_click.wait(HELD_S)
        end(*given, **named)
        has_ended.set()

    def begin_and_wait(*given: Any, **named: Any) -> None:
        begin(*given, **named)
        has_click.set()
        has_ended.wait(HELD_S)

    patch.setattr(SessionState, "on_script_finished", end_late)
    session.request_rerun(ClientState(fragment_id=next(m.delta.fragment_id for m in drawn if m.delta.fragment_id)))
    await asyncio.to_thread(is_ending.wait, PATIENCE_S)
    patch.setattr(SessionState, "on_script_will_rerun", begin_and_wait)
    session.request_rerun(click_button(drawn))
    await wait_until_ended(session)
    return read_texts(session)


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page of its own with what Streamlit keeps for it."""
    script = tmp_path / "page.py"
    script.write_text(SCRIPT)
    monkeypatch.setattr(Runtime, "_instance", None)
    uploads = MemoryUploadedFileManager("/upload")
    Runtime(RuntimeConfig(str(script), None, MemoryMediaFileStorage("/media"), uploads))
    return script


def run_apart(work: Coroutine[Any, Any, list[str]]) -> list[str]:
    """Run in another thread: tests in a browser leave a loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def test_what_a_click_has_drawn_arrives_although_the_timer_asks_at_that_moment(script: Path) -> None:
    """Catches a click that acts and shows nothing (`request_rerun` of Streamlit alone gives "polled" only)."""
    assert run_apart(click_while_polled(script)) == ["the act is done", "polled"]


def test_a_run_that_ends_takes_no_click_from_the_run_after_it(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a click that does nothing (a run of Streamlit alone sets the button back, and only "polled" comes)."""
    assert "the act is done" in run_apart(click_at_the_end_of_a_run(script, monkeypatch))
