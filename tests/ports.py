"""Ports that a server of the tests can be stopped on and started again."""

from __future__ import annotations

import contextlib
import secrets
import socket
import time

RANGE = range(20_000, 32_000)
"""Below the ports that systems hand out to connections: one of these would take a server's port while it is down."""


def free_port() -> int:
    """One that nothing listens on."""
    while True:
        port = secrets.choice(RANGE)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def wait_for_port(port: int, patience_s: float = 300) -> None:
    """Wait until something listens on a port."""
    deadline = time.monotonic() + patience_s
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing listens on port {port}")
        time.sleep(0.05)
