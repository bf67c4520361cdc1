"""The one open service of this process: participants' routes and researchers' pages share its writer."""

from __future__ import annotations

import threading
from typing import Any

import streamlit as st

from study.collection.researcher import Researcher
from study.participation.refusals import Refusal
from study.service import Service
from study.workspace.workspace import home

COOKIE = "foretell_login"

_lock = threading.Lock()
_open: list[Service] = []


def get_service() -> Service:
    """Return the service of the workspace, opened at the first call."""
    with _lock:
        if not _open:
            _open.append(Service(home()))
        return _open[0]


def get_acting_researcher() -> Researcher:
    """Return the researcher's door for this browser, with the permissions of its login; pages use no other.

    Raises
    ------
    Refusal
        The login has ended (401).
    """
    token: Any = st.context.cookies.get(COOKIE, "")
    # A page that AppTest runs has no browser, and its cookie is not a string. A browser's always is.
    return get_researcher_of(token) if isinstance(token, str) else get_service().researcher


def get_researcher_of(token: str) -> Researcher:
    """Return the researcher's door for a login's token; raise `Refusal` (401) without a login."""
    account = get_service().access.find_account(token)
    if account is None:
        raise Refusal(401, "Your login has ended. Reload this page and log in again.")
    return Researcher(get_service().workspace, account)


def close() -> None:
    """Commit what is queued and let go of the database."""
    with _lock:
        while _open:
            _open.pop().close()
