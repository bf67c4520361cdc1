"""The one open service of this process: participants' routes and researchers' pages share its writer."""

from __future__ import annotations

import threading

import streamlit as st

from study.collection.researcher import Researcher
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
    """Return the researcher's service for this browser; the audit trail records its actions under their address."""
    # A page that AppTest runs has no browser, and its cookie is not a string.
    address = get_service().access.find_address(str(st.context.cookies.get(COOKIE, "")))
    return get_service().researcher if address is None else get_service().act_as(address)


def close() -> None:
    """Commit what is queued and let go of the database."""
    with _lock:
        while _open:
            _open.pop().close()
