"""Withdraw a participant who asked for it, or give them their data."""

from __future__ import annotations

import json
from collections.abc import Sequence

import streamlit as st

from core.errors import ForetellError
from dashboard.monitor.choosing import choose_participant, require_chosen
from dashboard.shared import service
from dashboard.shared.messages import escape_markdown, show_errors
from study.collection.guests import LONGEST_REASON


def show_withdrawal_form(study: str, participants: Sequence[str]) -> None:
    """Erase the responses of a participant, by their name, private code or id, with a logged request."""
    with st.expander("Withdraw a participant who asked for it"):
        st.caption(
            "Erases the participant's responses for good, as their private code would. Consent, pay and the hashes of "
            "the responses stay, and the quota is open for another participant. The audit trail records the request "
            "under your name, so write nothing there that identifies the participant."
        )
        with st.form(f"withdraw_{study}", border=False, clear_on_submit=False):
            participant = _choose_anyone(participants, f"withdraw_who_{study}")
            request = st.text_input(
                "How and when they asked", key="withdraw_why", max_chars=LONGEST_REASON, placeholder="E-mail of 3 May"
            )
            confirmed = st.checkbox("The participant asked to withdraw. The responses cannot be restored.",
                                    key="withdraw_sure")  # fmt: skip
            asked = st.form_submit_button("Withdraw and erase")
        if asked:
            with show_errors():
                require_chosen(participant)
                if not confirmed:
                    raise ForetellError("Confirm that the participant asked to withdraw: the responses are erased.")
                done = service.get_acting_researcher().withdraw_participant(study, participant, request)
                st.success(escape_markdown(f"{done.participant} has withdrawn. Responses erased: {done.responses}."))


def show_data_form(study: str, participants: Sequence[str]) -> None:
    """Give everything held about a participant, by their name, private code or id, with a logged request."""
    with st.expander("Give a participant their data"):
        st.caption(
            "Everything that the workspace holds about one participant, as they may ask for it. It includes their "
            "responses and their condition, so you are no longer blinded to this participant. The audit trail records "
            "the request under your name."
        )
        with st.form(f"data_{study}", border=False, clear_on_submit=False):
            participant = _choose_anyone(participants, f"data_who_{study}")
            request = st.text_input("How and when they asked", key="data_why", max_chars=LONGEST_REASON)
            asked = st.form_submit_button("Collect and log")
        if asked:
            with show_errors():
                require_chosen(participant)
                held = service.get_acting_researcher().collect_subject_data(study, participant, request)
                content = json.dumps(held, indent=1, ensure_ascii=False)
                st.download_button("Download", content, f"{held['participant']}.json", "application/json")


def _choose_anyone(participants: Sequence[str], key: str) -> str:
    """Let a participant be chosen from the list, or named by their private code or id."""
    return choose_participant(
        participants,
        key,
        placeholder="Choose, or enter a private code or ID",
        takes_ids=True,
        explained="The name in the table above, the code on the participant's last page, or the ID of their link or at "
        "Prolific.",
    )
