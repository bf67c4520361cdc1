"""The one open service of this process: participants' routes and researchers' pages share its writer."""

from __future__ import annotations

import threading

from study.service import Service
from study.workspace import home

_lock = threading.Lock()
_open: list[Service] = []


def service() -> Service:
    """The service over the workspace, opened at the first call."""
    with _lock:
        if not _open:
            _open.append(Service(home()))
        return _open[0]


def close() -> None:
    """Commit what is queued and let go of the database."""
    with _lock:
        while _open:
            _open.pop().close()
