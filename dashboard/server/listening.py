"""How the server listens: half-sent requests end, and connections are as many as this process can hold."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from uvicorn.protocols.http.flow_control import service_unavailable
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADERS_S = 10.0
"""A request's headers must be complete this long after the connection, or its first byte, came in."""
LONGEST_HEADERS = 64 * 1024
"""Bytes of a request before its body: what parses them has no limit."""
MOST_CONNECTIONS = 4096
"""Beyond it, requests without a session get a 503, and pages send them again."""
TOKEN = b"x-session-token"
"""The header of a participant who has a session."""


class Impatient(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 with limits for the headers: it has a deadline for idle connections only."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._deadline: asyncio.TimerHandle | None = None
        self._upgraded = False
        self._waited_for = 0
        # With too many connections uvicorn would refuse every request, also from participants who have started.
        self._most, self.limit_concurrency = self.limit_concurrency, None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for the first request."""
        super().connection_made(transport)
        if self._is_full():
            self._serve, self.app = self.app, self._turn_away
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._forget()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Start or continue to wait until a request is complete; more bytes do not extend the deadline."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget()
        elif not self._upgraded and not self.transport.is_closing():
            self._waited_for += len(data)
            if self._waited_for > LONGEST_HEADERS:
                self._end()
            elif self._deadline is None:
                self._wait()

    def on_response_complete(self) -> None:
        """Leave the pause between two requests to uvicorn, which limits it."""
        self._forget()
        super().on_response_complete()

    def handle_websocket_upgrade(self) -> None:
        """Stop waiting: the websocket has deadlines of its own."""
        self._forget()
        self._upgraded = True
        super().handle_websocket_upgrade()

    def _is_full(self) -> bool:
        return self._most is not None and len(self.connections) > self._most

    async def _turn_away(self, scope: Any, receive: Any, send: Any) -> None:
        """Refuse a request beyond the limit by 503, unless it has a session or there is room again."""
        of_session = any(name == TOKEN for name, _ in scope.get("headers", ()))
        await (self._serve if of_session or not self._is_full() else service_unavailable)(scope, receive, send)

    def _wait(self) -> None:
        self._deadline = self.loop.call_later(HEADERS_S, self._end)

    def _forget(self) -> None:
        self._waited_for = 0
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.abort()


def settings() -> dict[str, Any]:
    """Return uvicorn's settings, for as many connections as the system allows this process."""
    return {
        "http": Impatient,
        "limit_concurrency": min(MOST_CONNECTIONS, _open_files() // 2),
        "log_level": "warning",
        "access_log": False,
    }


def _open_files() -> int:
    """Return how many files and connections this process may open, after raising the limit as far as possible."""
    try:
        import resource
    except ImportError:  # not on this system
        return 2 * MOST_CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * MOST_CONNECTIONS if hard == resource.RLIM_INFINITY else min(hard, 4 * MOST_CONNECTIONS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return wanted if soft == resource.RLIM_INFINITY else soft
