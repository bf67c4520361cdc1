"""The form that unblinds a study which still collects, for a reason that the audit trail keeps."""

from __future__ import annotations

import streamlit as st


def ask_reason(study: str) -> str | None:
    """Draw the form; return the reason once it is sent, else None."""
    st.caption(
        "After seeing the outcomes by condition, decisions to stop or to exclude participants can be biased. The audit "
        "trail, which cannot be changed, records that you unblinded, when and why. This is not a planned interim "
        "analysis: it does not end the collection."
    )
    with st.form(f"unblind_{study}", border=False):
        reason = st.text_input("Reason", key="unblind_reason", max_chars=300)
        return reason if st.form_submit_button("Unblind and log") else None
