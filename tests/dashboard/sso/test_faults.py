"""A provider that answers nonsense, is away or slow, and a wrong file of settings."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.testclient import TestClient
from typer.testing import CliRunner

from core.errors import ForetellError
from dashboard.cli import doctor
from dashboard.cli import main as cli
from dashboard.server import sso
from dashboard.server.sso import find_metadata_fault
from dashboard.shared import service as door
from study.service import Service
from study.workspace.workspace import VARIABLE
from tests.dashboard.sso.conftest import CALLBACK, PASSWORD, configured, login, said
from tests.oidc import SECRET, Provider, pressed
from tests.server import Server

NONSENSE = {
    "/.well-known/openid-configuration": [
        PlainTextResponse("<html>Welcome to the hotel's network</html>"), JSONResponse([]), JSONResponse({}),
        JSONResponse({"issuer": "https://evil.example"}), PlainTextResponse("", 503),
    ],
    "/token": [PlainTextResponse("", 500), PlainTextResponse("what?"), JSONResponse({}), JSONResponse([]),
               JSONResponse({"access_token": "a", "token_type": "Bearer"}),
               JSONResponse({"access_token": "a", "token_type": "Bearer", "id_token": "a.b.c"}),
               JSONResponse({"access_token": "a", "token_type": "Bearer", "id_token": 7})],
    "/keys": [PlainTextResponse("", 404), JSONResponse({"keys": []}), JSONResponse({"keys": 7}), JSONResponse({})],
}  # fmt: skip


@pytest.mark.parametrize(("path", "number"), [(path, n) for path, made in NONSENSE.items() for n in range(len(made))])
def test_nonsense_is_one_sentence(
    server: Server, provider: Provider, http: httpx.Client, path: str, number: int
) -> None:
    """Catches a reply of the provider that ends in a traceback, or is remembered after the provider is corrected."""
    provider.answers[path] = NONSENSE[path][number]
    begun = http.get("/login/sso")
    reply = http.get(pressed(http, begun.headers["location"]).headers["location"]) if begun.is_redirect else begun
    assert reply.status_code in (401, 502), reply.text
    assert said(reply).startswith(("The University d", "The University sent an invalid response"))
    assert "Traceback" not in server.log()
    provider.answers.clear()
    assert login(http).status_code == 303


@pytest.mark.parametrize("endpoint", ["authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"])
def test_no_endpoint_without_tls_is_believed_where_the_issuer_has_it(endpoint: str) -> None:
    """Catches the client's secret sent in clear because the metadata says so."""
    told = {"issuer": "https://login.example.org", endpoint: "http://login.example.org/x"}
    assert find_metadata_fault(told, "https://login.example.org") == "an endpoint without TLS"
    assert find_metadata_fault({**told, endpoint: "https://login.example.org/x"}, "https://login.example.org") is None
    assert find_metadata_fault(told, "https://login.example.org/tenant") == "metadata of another issuer"


def test_a_provider_that_is_away(tmp_path: Path) -> None:
    """Catches a traceback or a long wait where nobody answers, and a password that no longer works."""
    server = Server(tmp_path)
    configured(server, Provider())  # nobody listens at its port
    with Service(tmp_path) as service:
        service.access.set_password(PASSWORD)
    server.start()
    try:
        with httpx.Client(base_url=server.url, headers={"Accept": "text/html"}) as http:
            reply = http.get("/login/sso")
            assert (reply.status_code, said(reply)) == (
                502, "The University does not respond as it should. Try again later.",
            )  # fmt: skip
            assert http.post("/login", data={"password": PASSWORD}).status_code == 303
            assert http.get("/").status_code == 200
    finally:
        server.kill()
    assert "Traceback" not in server.log()
    assert "ConnectError" in server.log()


def test_a_provider_that_takes_too_long(workspace: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a request that waits for ever, or as long as now and then a byte comes; here a fifth of a second."""
    monkeypatch.setattr(sso, "PATIENCE_S", 0.2)
    right = httpx.get(f"{provider.issuer}/.well-known/openid-configuration").content

    async def drops() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b" "
            await asyncio.sleep(0.05)
        yield right

    provider.answers["/.well-known/openid-configuration"] = StreamingResponse(drops())
    server = Server(workspace)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for slow in (provider, Provider(port=silent.getsockname()[1])):
            configured(server, slow)
            door.close()
            with TestClient(Starlette(routes=sso.routes()), base_url=server.url, follow_redirects=False) as http:
                reply = http.get("/login/sso")
            assert reply.status_code == 502
            assert "The University does not respond as it should." in reply.text


def test_a_wrong_file_is_told_before_anything_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a server that starts with pages open, or closed without a word; and a secret that doctor tells."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    server = Server(tmp_path)
    configured(server, Provider())
    told = doctor._sso()
    assert told.endswith(f"; 1 addresses and 1 domains may log in; callback URL to register: {server.url}{CALLBACK}")
    assert SECRET not in told
    configured(server, Provider(), contact="7")
    command = ["serve", "--port", str(server.port), "--no-browser", "--no-demo"]
    with pytest.raises(ForetellError, match="contact: must be text"):
        CliRunner().invoke(cli.build_app(), command, catch_exceptions=False)
    with pytest.raises(RuntimeError, match="contact: must be text"):
        server.start()
    (tmp_path / "oidc.toml").unlink()
    assert doctor._sso().startswith("no provider")
