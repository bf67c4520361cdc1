"""Let what a click has drawn reach the browser, also when the page's timer asks for a part of it at that moment.

A run of a page sends its messages through the event loop. When the browser's timer asks for the polled part after a run
has ended and before the loop has handled its last messages, Streamlit starts another run at once, and then ignores what
the former one still has in the queue: the page does not show what the click has done
(docs/decisions/0075-the-last-messages-of-a-run.md).
"""

from __future__ import annotations

from streamlit.runtime.app_session import AppSession, AppSessionState
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData


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
