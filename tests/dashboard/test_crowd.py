"""More connections than the server takes: strangers wait, participants go on. By sockets, against a real server."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import httpx
import pytest

from study.service import Service
from tests.conftest import write_bundle
from tests.server import Server, serving

PATIENCE_S = 300
OPEN_FILES, LIMIT = 300, 150
"""The server takes half as many connections as the system lets it have open files."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("crowd")
    with Service(home) as service:
        service.researcher.open_study(
            write_bundle(home / "bundle", name="demo", trials=2, practice=0, side=8), per_condition=9
        )
    with serving(home, OPEN_FILES) as running:
        yield running


class Crowd:
    """Sockets with half-sent headers; `gather` opens again those that the server has closed."""

    def __init__(self, port: int, size: int) -> None:
        self._port, self._size = port, size
        self._sockets: list[socket.socket] = []

    def gather(self) -> None:
        """Have so many open connections."""
        self._sockets = [one for one in self._sockets if not has_ended(one)]
        while len(self._sockets) < self._size:
            one = socket.create_connection(("127.0.0.1", self._port), timeout=PATIENCE_S)
            one.sendall(b"GET /run/demo HTTP/1.1\r\nHost: x\r\nX-Slow: ")
            self._sockets.append(one)

    def has_left(self) -> bool:
        """Whether the server has closed every one."""
        self._sockets = [one for one in self._sockets if not has_ended(one)]
        return not self._sockets


def has_ended(one: socket.socket) -> bool:
    """Whether the server has closed a connection."""
    one.setblocking(False)
    try:
        ended = one.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        ended = True
    if ended:
        one.close()
    return ended


def fetch(server: Server, path: str, headers: dict[str, str] | None = None) -> int:
    """The status of a request on a connection of its own."""
    return httpx.get(server.url + path, headers=headers, timeout=PATIENCE_S).status_code


def test_beyond_the_limit_strangers_are_told_to_wait_and_participants_go_on(server: Server) -> None:
    """The limit refused everybody while it was reached, so half-sent headers held up those in the middle of a study."""
    session = httpx.post(f"{server.url}/api/v1/begin", json={"study": "demo"}, timeout=PATIENCE_S).json()
    mine = {"X-Session-Token": session["token"]}
    crowd, deadline = Crowd(server.port, LIMIT + 30), time.monotonic() + PATIENCE_S
    while True:  # sockets may end between two requests: what counts is a crowd that is there all along
        assert time.monotonic() < deadline
        crowd.gather()
        before, theirs = fetch(server, "/run/demo"), fetch(server, "/api/v1/state", mine)
        if (before, fetch(server, "/run/demo")) == (503, 503):
            break
    assert theirs == 200
    while not crowd.has_left():
        assert time.monotonic() < deadline + PATIENCE_S
        time.sleep(0.1)
    assert fetch(server, "/run/demo") == 200
    assert "Traceback" not in server.log()


def test_as_many_as_the_limit_are_answered(server: Server) -> None:
    """Idle connections below the limit, a page of each: nobody is turned away."""
    crowd = Crowd(server.port, LIMIT - 30)
    crowd.gather()
    assert [fetch(server, "/run/demo") for _ in range(5)] == [200] * 5
