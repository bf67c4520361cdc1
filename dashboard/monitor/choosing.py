"""The choice of a participant on Monitor."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.errors import ForetellError


def choose_participant(
    participants: Sequence[str],
    key: str,
    *,
    label: str = "Participant",
    placeholder: str = "Choose a participant",
    takes_ids: bool = False,
    explained: str | None = None,
) -> str:
    """Draw the choice of a participant, which can be searched, and return it; "" until one is chosen.

    Parameters
    ----------
    participants
        Their names, the newest first.
    takes_ids
        Whether something else that names a participant can be entered: a private code, or the id of a recruiter.
    """
    chosen = st.selectbox(
        label,
        participants,
        index=None,
        key=key,
        placeholder=placeholder,
        accept_new_options=takes_ids,
        help=explained,
        width=420,
    )
    return (chosen or "").strip()


def require_chosen(participant: str) -> None:
    """Raise `ForetellError` unless a participant was chosen."""
    if not participant:
        raise ForetellError("Choose a participant first.")
