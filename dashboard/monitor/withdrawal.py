"""Withdraw a participant who asked for it."""

from __future__ import annotations

import streamlit as st

from core.errors import ForetellError
from dashboard.shared import service
from dashboard.shared.messages import escape_markdown, show_errors
from study.collection.guests import LONGEST_REASON

LONGEST_ID = 200


def show_withdrawal_form(study: str) -> None:
    """Erase the responses of a participant, by their name, private code or id, with a logged request."""
    with st.expander("Withdraw a participant who asked for it"):
        st.caption(
            "Erases the participant's responses for good, as their private code would. Consent, pay and the hashes of "
            "the responses stay, and their quota place is free again. The audit trail records the request under your "
            "name, so write nothing there that identifies the participant."
        )
        with st.form(f"withdraw_{study}", border=False, clear_on_submit=False):
            participant = st.text_input(
                "Participant", key="withdraw_who", max_chars=LONGEST_ID, placeholder="P…, private code, or id",
                help="The name in the table above, the code on the participant's last page, or the id of their link or "
                "at Prolific.",
            )  # fmt: skip
            request = st.text_input(
                "How and when they asked", key="withdraw_why", max_chars=LONGEST_REASON, placeholder="E-mail of 3 May"
            )
            confirmed = st.checkbox("The participant asked to withdraw. The responses cannot be restored.",
                                    key="withdraw_sure")  # fmt: skip
            asked = st.form_submit_button("Withdraw and erase")
        if asked:
            with show_errors():
                if not confirmed:
                    raise ForetellError("Confirm that the participant asked to withdraw: the responses are erased.")
                done = service.get_acting_researcher().withdraw_participant(study, participant, request)
                st.success(escape_markdown(f"{done.participant} has withdrawn. Responses erased: {done.responses}."))
