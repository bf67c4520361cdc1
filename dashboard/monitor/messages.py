"""Send a message to participants who are in the study, and list those sent."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.errors import ForetellError
from dashboard.monitor.choosing import choose_participant
from dashboard.shared import service
from dashboard.shared.messages import escape_markdown, show_errors
from study.collection.messages import LONGEST_MESSAGE


def show_messages(study: str, participants: Sequence[str]) -> None:
    """Draw the form of a message and the messages sent so far."""
    with st.expander("Send a message to participants"):
        st.caption(
            "Participants who are in the study now read it as plain text at their next break or part, never between "
            "two trials. A message is no part of the frozen study: say nothing about the task or the AI, or its "
            "readers take part in another study than the rest. The audit trail keeps every message for good under your "
            "name, so write nothing that identifies a participant."
        )
        with st.form(f"message_{study}", border=False):
            text = st.text_area("Message", key="message_text", max_chars=LONGEST_MESSAGE, height=110)
            participant = choose_participant(
                participants,
                f"message_who_{study}",
                label="Recipient",
                placeholder="All participants who are in the study now",
            )
            confirmed = st.checkbox("It says nothing about the task, the AI or the responses.", key="message_sure")
            asked = st.form_submit_button("Send and log")
        if asked:
            with show_errors():
                _send(study, text, participant, confirmed=confirmed)
        sent = service.get_acting_researcher().list_messages(study)
        if len(sent):
            st.dataframe(sent.rename(columns=str.capitalize), hide_index=True, key="monitor_messages")


def _send(study: str, text: str, participant: str, *, confirmed: bool) -> None:
    if not confirmed:
        raise ForetellError("Confirm that the message says nothing about the task.")
    count = service.get_acting_researcher().send_message(study, text, participant)
    st.success(escape_markdown(f"Sent to {count} participant{'' if count == 1 else 's'}."))
