"""A provider of logins, and a server that is set to use it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import httpx
import pytest

from tests.oidc import CLIENT, SECRET, Provider, pressed, providing
from tests.server import Server

CALLBACK = "/door/sso/callback"

PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with providing(Provider()) as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("sso"))
    configured(server, provider)
    server.start()
    yield server
    server.kill()


@pytest.fixture(autouse=True)
def _as_at_first(server: Server, provider: Provider) -> Iterator[None]:
    """No login, no tries, and a provider that does all right."""
    provider.forget()
    yield
    with sqlite3.connect(server.home / "identity.db") as db:
        for table in ("password", "login", "login_try"):
            db.execute(f"DELETE FROM {table}")


def configured(server: Server, provider: Provider, **other: str) -> None:
    """``oidc.toml`` and the secret of a workspace."""
    keys = {
        "name": '"The University"', "issuer": f'"{provider.issuer}"', "client_id": f'"{CLIENT}"',
        "secret_file": '"oidc.secret"', "address": f'"{server.url}"', "people": '["Ada@Example.org"]',
        "domains": '["staff.example.org"]', "contact": '"Grace, grace@example.org"', **other,
    }  # fmt: skip
    (server.home / "oidc.toml").write_text("".join(f"{key} = {value}\n" for key, value in keys.items()))
    secret = server.home / "oidc.secret"
    secret.write_text(f"{SECRET}\n")
    secret.chmod(0o600)


@pytest.fixture
def http(server: Server) -> Iterator[httpx.Client]:
    """A browser with its cookies, which follows nothing by itself."""
    with httpx.Client(base_url=server.url, headers={"Accept": "text/html"}) as client:
        yield client


def back(http: httpx.Client) -> httpx.Response:
    """To the provider and her button, and as far as the answer that leads back."""
    begun = http.get("/login/sso")
    assert begun.status_code == 302, begun.text
    http.get(begun.headers["location"])
    return pressed(http, begun.headers["location"])


def login(http: httpx.Client) -> httpx.Response:
    """Log in by the provider, from the link to the reply for a researcher who returns."""
    return http.get(back(http).headers["location"])


def said(reply: httpx.Response) -> str:
    """The sentence on the door's page."""
    return reply.text.partition('role="alert">')[2].partition("</p>")[0].replace("&#x27;", "'")
