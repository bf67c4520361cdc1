"""The button that closes a study to new participants, once it is confirmed."""

from __future__ import annotations

import streamlit as st

from dashboard.shared import service


def offer_close(study: str, key: str) -> None:
    """Draw the button "Close"; it says what closing does, and a second button closes the study."""
    with st.popover("Close", key=f"{key}_ask"):
        st.markdown(
            "**Close the study to new participants?** They will be told that the study has ended. Participants "
            "already in the study can finish. You can reopen it."
        )
        if st.button("Close the study", type="primary", key=key):
            service.get_acting_researcher().close_study(study)
            st.rerun()
