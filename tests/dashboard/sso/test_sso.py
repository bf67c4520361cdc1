"""Logged in by a provider: a real server and a real provider on this machine, in every way in which it may be wrong."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from dashboard.shared.service import COOKIE
from study.collection.access.logins import LOGIN_NS, MOST_TRIES
from study.service import Service
from study.store import audit
from tests.dashboard.gate.test_gate import BROWSER, RESEARCHERS, check_refusal, get, stream_code
from tests.dashboard.sso.conftest import CALLBACK, PASSWORD, back, login, said
from tests.oidc import CLIENT, SECRET, Provider, pressed
from tests.server import Server

OTHER = {"Accept": "text/html", "X-Forwarded-For": "203.0.113.9"}


def acts(server: Server) -> list[tuple[str, str, str]]:
    with Service(server.home) as service:
        return [(row["actor"], row["act"], row["detail_json"]) for row in service.workspace.store.read(audit.acts)]


def test_who_is_on_the_list_is_let_in_and_out_again(server: Server, http: httpx.Client) -> None:
    """Catches a login that lets nobody in, into no pages, for ever, or without a trace of who it was."""
    assert http.get("/").headers["location"] == "/login"
    page = http.get("/login").text
    assert 'data-standing="out" data-ways="sso"' in page
    assert 'href="/login/sso">Log in with The University</a>' in page
    reply = login(http)
    assert (reply.status_code, reply.headers["location"]) == (303, "/")
    (cookie,) = [one.lower() for one in reply.headers.get_list("set-cookie") if one.startswith(COOKIE)]
    assert all(part in cookie for part in ("httponly", "samesite=lax", f"max-age={LOGIN_NS // 10**9}"))
    assert http.get("/").status_code == 200
    assert "You are logged in as ada@example.org." in http.get("/login").text
    inside = {"Cookie": f"{COOKIE}={http.cookies[COOKIE]}", "Origin": server.url}
    assert stream_code(server, inside) == 101
    http.post("/login/out", headers={"Origin": server.url})
    assert stream_code(server, inside) == 403
    assert acts(server)[-2:] == [("ada@example.org", "logged in", "{}"), ("ada@example.org", "logged out", "{}")]


def test_the_request_to_the_provider(server: Server, provider: Provider, http: httpx.Client) -> None:
    """Catches a flow without PKCE, state or nonce, with one used twice, or that sends people back elsewhere."""
    for _ in range(2):
        assert login(http).status_code == 303
    first, second = provider.asked
    for asked in (first, second):
        expected = {"response_type": "code", "client_id": CLIENT, "code_challenge_method": "S256"}
        assert expected.items() <= asked.items()
        assert set(asked["scope"].split()) == {"openid", "email"}
        assert asked["redirect_uri"] == server.url + CALLBACK
    for secret in ("state", "nonce", "code_challenge"):
        assert len(first[secret]) >= 20
        assert first[secret] != second[secret]


@pytest.mark.parametrize("path", RESEARCHERS)
def test_with_a_provider_and_no_password_the_pages_are_closed_everywhere(server: Server, path: str) -> None:
    """Catches "open to this machine because no password is set"."""
    assert get(server, path, {}).status_code == 401
    check_refusal(get(server, path, BROWSER), path)
    assert stream_code(server, {"Origin": server.url}) == 403


def test_a_whole_domain_and_no_other(provider: Provider, http: httpx.Client) -> None:
    """Catches a comparison by the end of the address, or one that minds capitals."""
    for email, code in {
        "bob@Staff.Example.org": 303,
        "bob@evilstaff.example.org": 403,
        "bob@staff.example.org.evil.example": 403,
        "staff.example.org@evil.example": 403,
        "bob@sub.staff.example.org": 403,
    }.items():
        provider.claims = {"sub": "8", "email": email, "email_verified": True}
        assert login(http).status_code == code, email
        http.cookies.delete(COOKIE) if code == 303 else None


@pytest.mark.parametrize(
    ("claims", "sentence", "why"),
    [
        ({"email": "eve@evil.example"}, "eve@evil.example may not see these pages. Ask Grace, grace@example.org for",
         "not on the list"),
        ({"email_verified": False}, "The University has verified no e-mail address of yours. Ask Grace", "no verified"),
        ({"email_verified": "true"}, "The University has verified no e-mail address of yours", "no verified"),
        ({"email_verified": None}, "The University has verified no e-mail address of yours", "no verified"),
        ({"email": "<b>@staff.example.org"}, "The University has verified no", "no verified"),
        ({"email": ["ada@example.org"]}, "The University has verified no", "no verified"),
        ({"nonce": "another"}, "The University sent an invalid response. Log in again.", "invalid response"),
        ({"nonce": None}, "The University sent an invalid response", "invalid response"),
        ({"aud": "another"}, "The University sent an invalid response", "invalid response"),
        ({"aud": "another", "azp": CLIENT}, "The University sent an invalid response", "invalid response"),
        ({"aud": None}, "The University sent an invalid response", "invalid response"),
        ({"iss": "https://evil.example"}, "The University sent an invalid response", "invalid response"),
        ({"exp": int(time.time()) - 3600}, "The University sent an invalid response", "invalid response"),
        ({"exp": None}, "The University sent an invalid response", "invalid response"),
    ],
)  # fmt: skip
def test_claims_that_do_not_let_in(
    server: Server, provider: Provider, http: httpx.Client, claims: dict[str, object], sentence: str, why: str
) -> None:
    """Catches each check of the ID token and of the list left out; a refusal names nobody in the audit trail."""
    provider.claims = {**provider.claims, **claims}
    reply = login(http)
    assert reply.status_code in (401, 403)
    assert said(reply).startswith(sentence)
    assert COOKIE not in http.cookies
    actor, act, detail = acts(server)[-1]
    assert (actor, act) == ("researcher", "refused a login")
    assert why in detail
    assert "@" not in detail


@pytest.mark.parametrize("sign", ["none", "HS256", "stranger"])
def test_a_token_that_somebody_else_could_have_made(provider: Provider, http: httpx.Client, sign: str) -> None:
    """Catches a signature not checked, or of a kind that the metadata lists and that proves nothing."""
    provider.sign = sign
    reply = login(http)
    assert (reply.status_code, COOKIE in http.cookies) == (401, False)
    assert "invalid response" in said(reply)


def test_an_address_that_only_userinfo_tells(provider: Provider, http: httpx.Client) -> None:
    """Catches a provider that keeps to the standard's default, refused; and userinfo of another person, believed."""
    provider.claims = {"sub": "7"}
    assert login(http).status_code == 303
    http.cookies.clear()
    provider.userinfo = {**provider.userinfo, "sub": "8"}
    assert "invalid response" in said(login(http))
    assert COOKIE not in http.cookies


def test_an_answer_counts_once_and_where_it_was_asked_for(
    server: Server, provider: Provider, http: httpx.Client
) -> None:
    """Catches a callback replayed with its cookies, sent to another browser (login CSRF), or never asked for."""
    with httpx.Client(base_url=server.url) as victim:
        assert said(victim.get(back(http).headers["location"])).startswith("This login was not started here")
        answer = back(http).headers["location"]
        victim.get("/login/sso")
        assert victim.get(answer).status_code == 400
        for path in (CALLBACK, f"{CALLBACK}?code=x&state=y", f"{CALLBACK}?code=x&state=y&iss=z"):
            assert victim.get(path).status_code == 400
        assert COOKIE not in victim.cookies
    answer = back(http).headers["location"]
    kept = dict(http.cookies)
    hits = len(provider.hits)
    assert http.get(answer).status_code == 303
    assert len(provider.hits) > hits
    hits = len(provider.hits)
    with httpx.Client(base_url=server.url, cookies=kept) as thief:
        assert thief.get(answer).status_code == 400
        assert COOKIE not in thief.cookies
    assert len(provider.hits) == hits  # the provider is not even asked


def test_a_cookie_of_ones_own_making_is_no_login_begun(server: Server, http: httpx.Client) -> None:
    """Catches a cookie that is believed unsigned: anybody could take a login that another browser began."""
    answer = back(http).headers["location"]
    state = parse_qs(urlsplit(answer).query)["state"][0]
    made = base64.b64encode(json.dumps({f"_state_sso_{state}": {"exp": time.time() + 600}}).encode()).decode()
    signature = http.cookies["foretell_sso"].strip('"').split(".", 1)[1]
    for cookie in (made, f"{made}.x.y", f"{made}.{signature}"):
        reply = httpx.get(answer, headers={"Cookie": f"foretell_sso={cookie}"})
        assert (reply.status_code, COOKIE in reply.cookies) == (400, False)


def test_who_says_no_at_the_provider(http: httpx.Client) -> None:
    """Catches a text of somebody else's on the page: whoever makes the link would choose it."""
    begun = http.get("/login/sso").headers["location"]
    state = parse_qs(urlsplit(begun).query)["state"][0]
    reply = http.get(f"{CALLBACK}?error=access_denied&error_description=Call+me&state={state}")
    assert (reply.status_code, said(reply)) == (
        401,
        "The University did not log you in. Try again, or ask Grace, grace@example.org.",
    )
    assert "Call me" not in reply.text


def test_after_a_few_tries_one_has_to_wait_and_the_password_still_works(server: Server, provider: Provider) -> None:
    """Catches no limit, one that a success does not end, and one that closes the other way in."""
    with Service(server.home) as service:
        service.access.set_password(PASSWORD)
    with httpx.Client(base_url=server.url, headers=OTHER) as http:
        provider.claims = {**provider.claims, "email": "eve@evil.example"}
        assert [login(http).status_code for _ in range(MOST_TRIES)] == [403] * MOST_TRIES
        reply = http.get("/login/sso")
        assert (reply.status_code, said(reply)) == (429, "Too many tries. Wait 15 minutes.")
        assert 'data-ways="password sso"' in reply.text
        assert http.post("/login", data={"password": PASSWORD}).status_code == 303
    with httpx.Client(base_url=server.url, headers={**OTHER, "X-Forwarded-For": "203.0.113.10"}) as http:
        provider.claims = {**provider.claims, "email": "ada@example.org"}
        assert [login(http).status_code for _ in range(MOST_TRIES + 2)] == [303] * (MOST_TRIES + 2)


def test_another_site_cannot_begin_and_no_other_name_is_led_astray(server: Server, http: httpx.Client) -> None:
    """Catches a login begun by a stranger's page, and a way back built from what the request calls this server."""
    reply = http.get("/login/sso", headers={"Sec-Fetch-Site": "cross-site"})
    assert (reply.status_code, reply.headers["location"]) == (303, "/login")
    for headers in ({"Host": "evil.example"}, {"X-Forwarded-Host": "evil.example"}):
        reply = http.get("/login/sso", headers=headers)
        location = reply.headers.get("location", "")
        assert "evil.example" not in location
        assert parse_qs(urlsplit(location).query).get("redirect_uri", [server.url + CALLBACK]) == [
            server.url + CALLBACK
        ]
    assert said(http.get("/login/sso", headers={"Host": "evil.example"})) == (
        f"The University logs in at {server.url}/login only. Go there."
    )
    for target in ("//evil.example", "https://evil.example"):
        answer = back(http).headers["location"]
        reply = http.get(f"{answer}&next={target}&redirect_uri={target}")
        assert reply.headers["location"] == "/"


def test_over_tls_both_cookies_are_for_tls_only(server: Server) -> None:
    """uvicorn takes the scheme from a proxy on this machine. Catches a state cookie sent in clear."""
    proxied = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.11"}
    begun = httpx.get(f"{server.url}/login/sso", headers=proxied)
    cookie = begun.headers["set-cookie"].lower()
    assert all(part in cookie for part in ("secure", "httponly", "samesite=lax", "path=/", "max-age=600"))
    answer = httpx.get(f"{begun.headers['location']}&yes=1").headers["location"]
    kept = begun.headers["set-cookie"].partition(";")[0]
    reply = httpx.get(answer, headers={**proxied, "Cookie": kept})
    assert "secure" in next(one for one in reply.headers.get_list("set-cookie") if one.startswith(COOKIE)).lower()


def test_who_is_taken_off_the_list_is_out(server: Server, http: httpx.Client, provider: Provider) -> None:
    """Catches an open login that outlives its right, and a provider taken away that leaves its logins behind."""
    assert login(http).status_code == 303
    token = http.cookies[COOKIE]
    file = server.home / "oidc.toml"
    whole = file.read_text()
    try:
        with Service(server.home) as service:
            assert service.access.find_login_state(token) == "in"
        file.write_text(whole.replace("Ada@", "Grace@"))
        with Service(server.home) as service:
            assert (service.access.find_login_state(token), service.access.find_address(token)) == ("out", None)
            service.access.set_password(PASSWORD)
        http.cookies.clear()
        assert login(http).status_code == 303
        file.unlink()
        with Service(server.home) as service:
            assert service.access.find_login_state(http.cookies[COOKIE]) == "out"
    finally:
        file.write_text(whole)


def test_logins_by_a_provider_end_too(server: Server, tmp_path: Path) -> None:
    """Catches a login without an end."""
    now = [10**18]
    for name in ("oidc.toml", "oidc.secret"):
        (tmp_path / name).write_text((server.home / name).read_text())
        (tmp_path / name).chmod(0o600)
    with Service(tmp_path, clock=lambda: now[0]) as service:
        token = service.access.admit({"email": "ADA@example.org", "email_verified": True}, "a")
        now[0] += LOGIN_NS - 1
        assert (service.access.find_login_state(token), service.access.find_address(token)) == ("in", "ada@example.org")
        now[0] += 1
        assert service.access.find_login_state(token) == "out"
        assert service.researcher.verify() == []


def test_the_secret_is_nowhere(server: Server, provider: Provider, http: httpx.Client) -> None:
    """Catches it in a page, a redirect, a cookie, the log, a database, or sent to anything but the token endpoint."""
    texts = []
    provider.claims = {**provider.claims, "nonce": "another"}
    for _ in range(2):
        begun = http.get("/login/sso")
        page = http.get(begun.headers["location"])
        reply = http.get(pressed(http, begun.headers["location"]).headers["location"])
        texts += [f"{r.headers}{r.text}" for r in (begun, page, reply, http.get("/login"))]
        provider.claims = {}
    wrong = back(http).headers["location"].replace("code=", "code=not")
    texts += [http.get(wrong).text, server.log(), repr(provider.asked), repr(acts(server))]
    kept = b"".join(
        path.read_bytes() for path in server.home.iterdir() if path.name.startswith(("foretell", "identity"))
    )
    for words in (SECRET, SECRET.replace(" ", "+"), httpx.BasicAuth(CLIENT, SECRET)._auth_header[6:]):
        assert not [text for text in texts if words in text]
        assert words.encode() not in kept
    assert any("invalid response" in text for text in texts)
    assert "The University: OAuthError invalid_grant\n" in server.log()
