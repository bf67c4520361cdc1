"""Ports that a server of the tests can be stopped on and started again."""

from __future__ import annotations

import contextlib
import secrets
import socket

RANGE = range(20_000, 32_000)
"""Below the ports that systems hand out to connections: one of these would take a server's port while it is down."""


def free_port() -> int:
    """One that nothing listens on."""
    while True:
        port = secrets.choice(RANGE)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
