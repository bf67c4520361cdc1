"""Half-sent requests, cut requests, and what the log says of them: by sockets, against a real server."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import httpx
import pytest
from websockets.sync.client import connect

from dashboard.server.listening import HEADERS_S, LONGEST_HEADERS
from dashboard.shared.service import COOKIE
from study.service import Service
from tests.conftest import write_bundle
from tests.server import Server, serving

PATIENCE_S = 300


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("listening")
    with Service(home) as service:
        service.researcher.open_study(
            write_bundle(home / "bundle", name="demo", trials=2, practice=0, side=8), per_condition=9
        )
    with serving(home) as running:
        yield running


def test_half_sent_headers_end(server: Server) -> None:
    """They stayed open for ever, also those that got a byte now and then; a websocket lives on."""
    with ExitStack() as opened:
        cookie = {"Cookie": "; ".join(f"{name}={value}" for name, value in server.login().items())}
        alive = opened.enter_context(
            connect(f"ws://127.0.0.1:{server.port}/_stcore/stream", additional_headers=cookie, origin=server.url)  # type: ignore[arg-type]
        )
        sockets = [opened.enter_context(socket.create_connection(("127.0.0.1", server.port))) for _ in range(50)]
        kept = opened.enter_context(httpx.Client(base_url=server.url))
        for number, one in enumerate(sockets):
            if number:
                one.sendall(b"GET /run/demo HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        began = time.monotonic()
        while sockets:
            assert kept.get("/run/demo", timeout=PATIENCE_S).status_code == 200
            assert time.monotonic() - began < PATIENCE_S
            for one in list(sockets):
                one.settimeout(0.01)
                with suppress(TimeoutError):
                    try:
                        if number % 2:
                            one.sendall(b"a")
                        ended = one.recv(1) == b""
                    except OSError as error:
                        if isinstance(error, TimeoutError):
                            raise
                        ended = True
                    if ended:
                        sockets.remove(one)
        assert time.monotonic() - began > HEADERS_S / 2
        alive.ping().wait(PATIENCE_S)


def test_endless_headers_end_before_they_fill_the_memory(server: Server) -> None:
    """The parser has no limit of its own: in the ten seconds of the deadline a fast line brings a gigabyte."""
    with socket.create_connection(("127.0.0.1", server.port)) as endless:
        endless.sendall(b"GET /run/demo HTTP/1.1\r\nHost: x\r\nX-Long: ")
        sent = 0
        with suppress(ConnectionError):
            while sent < 200 * LONGEST_HEADERS:
                endless.sendall(b"a" * 1024)
                sent += 1024
    assert sent < 200 * LONGEST_HEADERS
    long = {"X-Long": "a" * (LONGEST_HEADERS // 2)}
    assert httpx.get(f"{server.url}/run/demo", headers=long).status_code == 200


def test_a_cut_request_leaves_no_traceback_and_no_address(server: Server) -> None:
    for path in ("api/v1/responses", "door"):
        with socket.create_connection(("127.0.0.1", server.port)) as cut:
            cut.sendall(f"POST /{path} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{".encode())
            time.sleep(0.2)
    assert httpx.get(f"{server.url}/run/demo").status_code == 200
    assert "Traceback" not in server.log()
    assert "127.0.0.1" not in server.log().replace(server.url, "")
    assert COOKIE not in server.log()
