"""The login page for accounts with a password of their own, and the door that a browser's login opens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.testclient import TestClient
from typer.testing import CliRunner

from dashboard.cli import main as cli
from dashboard.server import api, login
from dashboard.shared import service
from dashboard.shared.service import COOKIE, get_acting_researcher
from study.collection.access.permissions import Permission
from study.participation.refusals import Refusal
from tests.conftest import write_bundle

PASSWORD = "correct horse battery"
ODD = "a&b'c@example.org"
SITE = "http://testserver"


@pytest.fixture
def http(workspace: Path) -> Iterator[TestClient]:
    folder = write_bundle(workspace / "bundles" / "demo-0123456789ab", name="demo", trials=2, practice=0)
    opened = service.get_service()
    opened.researcher.open_study(folder, 2)
    opened.researcher.set_member("demo", "owner@example.org", "owner")
    opened.researcher.set_member("demo", ODD, "viewer")
    with TestClient(Starlette(routes=[*login.routes(), *api.routes()]), follow_redirects=False) as client:
        yield client


def choose(http: TestClient, link: str, *, repeated: str = PASSWORD, password: str = PASSWORD) -> tuple[int, str]:
    reply = http.post(
        "/login/password", data={"key": link.partition("=")[2], "password": password, "repeated": repeated}
    )
    return reply.status_code, reply.text


def test_a_link_asks_for_a_password_and_is_used_up_by_the_form_alone(http: TestClient) -> None:
    """Catches a link that a mail program uses up, a wrong form that does, and markup from an address."""
    link = service.get_service().researcher.make_member_link("demo", ODD)
    for _ in range(2):
        shown = http.get(link)
        assert (shown.status_code, shown.cookies.get(COOKIE)) == (200, None)
        assert "a&amp;b&#39;c@example.org" in shown.text
        assert ODD not in shown.text
        assert "default-src 'self'" in shown.headers["content-security-policy"]
    assert choose(http, link, repeated="something else")[0] == 422
    assert choose(http, link, password="short", repeated="short")[0] == 422
    foreign = http.post("/login/password", headers={"Origin": "https://elsewhere.example"})
    assert foreign.status_code == 403
    assert choose(http, link)[0] == 303
    code, text = choose(http, link)
    assert code == 401
    assert "unknown, used or expired" in text


def test_the_login_page_asks_for_the_address_where_there_are_accounts(http: TestClient) -> None:
    """Catches a page on which those with an account cannot log in, or the shared password no longer can."""
    access = service.get_service().access
    assert 'name="person"' not in http.get("/login").text
    choose(http, access.make_account_link(ODD))
    http.cookies.clear()
    assert 'name="person"' in http.get("/login").text
    access.set_password("the shared password")
    for person, password, code in (
        (ODD.upper(), PASSWORD, 303),
        ("", "the shared password", 303),
        (ODD, "the shared password", 401),
        ("", PASSWORD, 401),
    ):
        reply = http.post("/login", data={"person": person, "password": password})
        assert reply.status_code == code, person


def test_a_preview_needs_its_permission(http: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a route that looks only at whether somebody is logged in."""
    opened = service.get_service()
    secret = opened.researcher.make_member_link("demo", ODD).partition("=")[2]
    token = opened.access.choose_password(secret, PASSWORD)
    codes = []
    for role in ("viewer", "manager"):
        opened.researcher.set_member("demo", ODD, role)  # type: ignore[arg-type]
        http.cookies.set(COOKIE, token)
        codes.append(http.post("/api/v1/begin", json={"study": "demo", "preview": True}).status_code)
    assert codes == [403, 201]


def test_a_page_has_the_door_of_its_cookie_and_none_after_the_login(
    http: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a page that acts as an administrator once its login has ended, as an open websocket could."""

    class Context:
        cookies: ClassVar[dict[str, str]] = {}

    monkeypatch.setattr(st, "context", Context)
    opened = service.get_service()
    token = opened.access.choose_password(opened.access.make_account_link(ODD).partition("=")[2], PASSWORD)
    Context.cookies = {COOKIE: token}
    page = get_acting_researcher()
    assert (page.actor, page.may(Permission.SEE_OUTCOMES, "demo")) == (ODD, False)
    opened.access.logout(token)
    for cookies in (Context.cookies, {}, {COOKIE: ""}):
        Context.cookies = cookies
        with pytest.raises(Refusal, match="login has ended"):
            get_acting_researcher()


def test_the_commands_act_as_an_administrator(workspace: Path) -> None:
    """Catches a command that does not do what it says, and an error that is no sentence."""
    folder = write_bundle(workspace / "bundles" / "demo-0123456789ab", name="demo", trials=2, practice=0)
    service.get_service().researcher.open_study(folder, 2)

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(cli.build_app(), list(arguments))
        return done.output if done.exit_code == 0 else f"refused: {done.output}{done.exception}"

    assert "Add its owner first" in run("members", "demo", "--add", "ada@example.org")
    assert run("members", "demo", "--add", "Ada@example.org", "--role", "owner") == (
        "ada@example.org: owner, login: none yet\n"
    )
    assert "last owner" in run("members", "demo", "--remove", "ada@example.org")
    link = run("account", "ada@example.org", "--address", "https://study.example.org/").strip()
    assert link.startswith("https://study.example.org/login?key=")
    token = service.get_service().access.choose_password(link.partition("=")[2], PASSWORD)
    assert "own password (link by an administrator)" in run("members", "demo")
    assert run("account") == "ada@example.org: owner of demo, login: own password (link by an administrator)\n"
    assert "can no longer log in" in run("account", "ada@example.org", "--remove")
    assert service.get_service().access.find_account(token) is None
