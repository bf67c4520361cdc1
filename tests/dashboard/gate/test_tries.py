"""How often a password may be tried, and how logins end."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from dashboard.server import gate
from dashboard.server.gate import COOKIE, Gate
from dashboard.shared import service as door
from study.collection.access.logins import LOGIN_NS, MOST_TRIES, MOST_TRIES_IN_ALL, WINDOW_NS
from study.participation.refusals import Refusal
from study.service import Service
from tests.dashboard.gate.conftest import ELSEWHERE, PASSWORD, login
from tests.server import Server


def test_after_a_few_tries_one_has_to_wait(guarded: Server) -> None:
    """Counted by address: who tries from another one is not held up, and the right password does not help."""
    mine, other = {"X-Forwarded-For": "203.0.113.9"}, {"X-Forwarded-For": "203.0.113.10"}
    codes = [login(guarded, f"wrong {n}", **mine).status_code for n in range(MOST_TRIES + 1)]
    assert codes == [401] * MOST_TRIES + [429]
    assert login(guarded, **mine).status_code == 429
    assert login(guarded, **other).status_code == 303
    six = [login(guarded, "wrong", **{"X-Forwarded-For": f"2001:db8::{n}"}).status_code for n in range(1, 8)]
    assert six[-1] == 429  # one household has all of a network's addresses


def test_long_and_odd_bodies_are_no_password(guarded: Server) -> None:
    url = f"{guarded.url}/login"
    assert httpx.post(url, content=b"password=" + b"x" * 10**6, headers=ELSEWHERE).status_code == 413
    assert httpx.post(url, content=b"\xff\xfe=%00", headers=ELSEWHERE).status_code == 401
    assert "<script>" not in httpx.post(url, data={"password": "<script>"}, headers=ELSEWHERE).text


def test_an_open_websocket_ends_with_its_login(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked again at every message here, at most every five seconds else."""
    monkeypatch.setattr(gate, "RECHECK_S", 0.0)
    heard: list[str] = []

    async def echo(socket: WebSocket) -> None:
        await socket.accept()
        with suppress(WebSocketDisconnect):
            while True:
                heard.append(await socket.receive_text())
                await socket.send_text(heard[-1])

    door.get_service().access.set_password(PASSWORD)
    token = door.get_service().access.login(PASSWORD, "x")
    inside = Starlette(routes=[WebSocketRoute("/", echo)])
    with TestClient(Gate(inside, []), headers={"Cookie": f"{COOKIE}={token}"}).websocket_connect("/") as opened:
        opened.send_text("before")
        assert opened.receive_text() == "before"
        door.get_service().access.logout(token)
        opened.send_text("after")
        with pytest.raises(WebSocketDisconnect):
            opened.receive_text()
    assert heard == ["before"]


def test_logins_end_and_everything_is_in_the_audit_trail(tmp_path: Path) -> None:
    now = [10**18]
    with Service(tmp_path, clock=lambda: now[0]) as service:
        assert (service.access.find_login_state(""), service.access.ways()) == ("out", ())
        service.access.set_password(PASSWORD)
        token = service.access.login(PASSWORD, "a")
        assert (
            service.access.find_login_state(token),
            service.access.find_login_state(""),
            service.access.find_login_state("x"),
        ) == (
            "in",
            "out",
            "out",
        )
        now[0] += LOGIN_NS
        assert service.access.find_login_state(token) == "out"
        again = service.access.login(PASSWORD, "a")
        with pytest.raises(Refusal):
            service.access.login("wrong", "a")
        service.access.set_password(PASSWORD + "!")
        assert service.access.find_login_state(again) == "out"  # whoever set it meant the others to leave
        service.access.logout(service.access.login(PASSWORD + "!", "a"))
        acts = service.workspace.store.read(
            lambda db: db.exec_driver_sql("SELECT actor, act FROM audit ORDER BY seq").all()
        )
        assert service.researcher.verify() == []
    told = ["set the password", "logged in", "logged in", "refused a login", "set the password", "logged in"]
    assert [tuple(row) for row in acts] == [("researcher", act) for act in [*told, "logged out"]]
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert PASSWORD.encode() not in kept
    assert token.encode() not in kept


def test_tries_from_everywhere_are_limited_and_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [10**18]
    with Service(tmp_path, clock=lambda: now[0]) as service:
        service.access.set_password(PASSWORD)
        monkeypatch.setattr(service.access, "_fits", lambda hashed, password: password == PASSWORD)
        for n in range(MOST_TRIES_IN_ALL):
            with pytest.raises(Refusal, match="password is wrong"):
                service.access.login("wrong", f"address {n}")
        with pytest.raises(Refusal, match="Wait 15 minutes"):
            service.access.login(PASSWORD, "new address")
        now[0] += WINDOW_NS + 1
        assert service.access.login(PASSWORD, "new address")
        assert (
            service.workspace.identities.read(lambda db: db.exec_driver_sql("SELECT count(*) FROM login_try").scalar())
            == 0
        )


def test_tries_of_strangers_do_not_lock_out_a_known_browser_or_the_provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred wrong passwords from 21 networks kept everybody out, also those who log in at the university."""
    with Service(tmp_path) as service:
        service.access.set_password(PASSWORD)
        monkeypatch.setattr(service.access, "_fits", lambda hashed, password: password == PASSWORD)
        device = service.access.new_device()
        for n in range(MOST_TRIES_IN_ALL):
            with pytest.raises(Refusal, match="password is wrong"):
                service.access.login("wrong", f"network {n // 5}")
        for stranger in ("", "x.y", device[:-1], f"other.{device.partition('.')[2]}"):
            with pytest.raises(Refusal, match="Wait 15 minutes"):
                service.access.login(PASSWORD, "here", stranger)
        service.access.count_try("here")
        assert service.access.find_login_state(service.access.login(PASSWORD, "here", device)) == "in"
        for n in range(MOST_TRIES):
            with pytest.raises(Refusal, match="password is wrong"):
                service.access.login("wrong", f"{n}", device)
        with pytest.raises(Refusal, match="Wait 15 minutes"):
            service.access.login(PASSWORD, "here", device)
