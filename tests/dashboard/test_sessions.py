"""The messages of a run of a page, with Streamlit's own session and script runner."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime import Runtime, RuntimeConfig
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.script_data import ScriptData
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequestType

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
PATIENCE_S = 60


async def wait_until_ended(session: AppSession) -> None:
    """Wait for the end of a run and of its messages."""
    deadline = time.monotonic() + PATIENCE_S
    while session._scriptrunner is not None:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def click_while_polled(script: Path) -> list[str]:
    """Click, and let the timer ask after the run of the click has ended and before its messages are handled.

    Return the texts that the browser is sent after the click.
    """
    session = AppSession(ScriptData(str(script), False), MemoryUploadedFileManager("/upload"), ScriptCache(), None, {})
    session.request_rerun(None)
    await wait_until_ended(session)
    drawn = session._browser_queue.flush()
    (fragment,) = {m.delta.fragment_id for m in drawn if m.delta.fragment_id}
    (button,) = [m.delta.new_element.button.id for m in drawn if m.delta.new_element.WhichOneof("type") == "button"]
    click = ClientState()
    click.widget_states.widgets.append(WidgetState(id=button, trigger_value=True))
    session.request_rerun(click)
    runner = session._scriptrunner
    assert runner is not None
    deadline = time.monotonic() + PATIENCE_S
    while runner._requests._state != ScriptRequestType.STOP:  # the loop is held meanwhile, as on a busy machine
        assert time.monotonic() < deadline
        time.sleep(0.01)
    session.request_rerun(ClientState(fragment_id=fragment, is_auto_rerun=True))
    await asyncio.sleep(0)
    await wait_until_ended(session)
    sent = [m.delta.new_element.text.body for m in session._browser_queue.flush()]
    return [text for text in sent if text]


def test_what_a_click_has_drawn_arrives_although_the_timer_asks_at_that_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a click that acts and shows nothing (`request_rerun` of Streamlit alone gives "polled" only)."""
    script = tmp_path / "page.py"
    script.write_text(SCRIPT)
    monkeypatch.setattr(Runtime, "_instance", None)
    uploads = MemoryUploadedFileManager("/upload")
    Runtime(RuntimeConfig(str(script), None, MemoryMediaFileStorage("/media"), uploads))
    with ThreadPoolExecutor(1) as thread:  # tests in a browser leave a loop running in this one
        shown = thread.submit(asyncio.run, click_while_polled(script)).result()
    assert shown == ["the act is done", "polled"]
