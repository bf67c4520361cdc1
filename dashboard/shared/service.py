"""The one open service of this process: participants' routes and researchers' pages share its writer."""

from __future__ import annotations

import threading

import streamlit as st

from study.service import Service
from study.workspace.workspace import home

COOKIE = "foretell_login"

_lock = threading.Lock()
_open: list[Service] = []


def service() -> Service:
    """The service over the workspace, opened at the first call."""
    with _lock:
        if not _open:
            _open.append(Service(home()))
        return _open[0]


def acting() -> Service:
    """The service for what somebody does on a page: it stands under her name in the audit trail, if she has one."""
    # Of a page that AppTest runs there is no browser, and what stands for its cookie is no text.
    person = service().person(str(st.context.cookies.get(COOKIE, "")))
    return service() if person is None else service().acting_as(person)


def close() -> None:
    """Commit what is queued and let go of the database."""
    with _lock:
        while _open:
            _open.pop().close()
