"""Let what a click has drawn reach the browser, and let no click be lost to the run before it.

A run of a page sends its messages through the event loop. When the browser's timer asks for the polled part after a run
has ended and before the loop has handled its last messages, Streamlit starts another run at once, and then ignores what
the former one still has in the queue: the page does not show what the click has done
(docs/decisions/0075-the-last-messages-of-a-run.md).

A run that ends sets every button back. When a click stops a run that is past its last point of interruption, the newer
run can have taken the click from the browser by then, and not yet have read it: the button says that nobody clicked.
"""

from __future__ import annotations

from typing import Any

from streamlit.runtime.app_session import AppSession, AppSessionState
from streamlit.runtime.scriptrunner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequestType


def deliver_last_messages() -> None:
    """Let every session of this process start a run only after the messages of the run that has ended."""
    create = AppSession._create_scriptrunner

    def create_after_messages(session: AppSession, asked: RerunData) -> None:
        ended = session._scriptrunner
        if ended is None:  # nothing has run, or Streamlit has stopped the run on purpose
            create(session, asked)
            return

        def go_on() -> None:  # what the ended run has sent was put into the loop before this
            now = session._scriptrunner
            if session._state == AppSessionState.SHUTDOWN_REQUESTED:
                return
            if now is None or now is ended:
                create(session, asked)
            elif not asked.is_auto_rerun and not now.request_rerun(asked):  # a newer run draws the polled part too
                create_after_messages(session, asked)

        session._event_loop.call_soon(go_on)

    AppSession._create_scriptrunner = create_after_messages  # type: ignore[method-assign, assignment]


def keep_newer_clicks() -> None:
    """Let a run that was stopped by a newer one leave the state of the widgets to that one."""
    make = ScriptRunner.__init__

    def make_with_guard(runner: ScriptRunner, *given: Any, **named: Any) -> None:
        make(runner, *given, **named)
        state, requests = runner._session_state, runner._requests
        end = state.on_script_finished

        def end_unless_stopped(*given: Any, **named: Any) -> None:
            with requests._lock:  # a click stops this run before or after, and not meanwhile
                if requests._state != ScriptRequestType.STOP:
                    end(*given, **named)

        object.__setattr__(state, "on_script_finished", end_unless_stopped)  # its own setter writes into the session

    ScriptRunner.__init__ = make_with_guard  # type: ignore[method-assign, assignment]
