"""Who gets in from where: a real server, asked as somebody elsewhere asks, at its pages, files, uploads, websocket."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.routing import Route
from streamlit.web.server.starlette.starlette_app import create_streamlit_routes
from typer.testing import CliRunner
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from core.errors import ForetellError
from dashboard import pages
from dashboard.cli import main as cli
from dashboard.server import gate
from dashboard.server.gate import COOKIE
from study.collection.access.logins import LINK_NS, LOGIN_NS
from study.participation.refusals import Refusal
from study.service import Service
from study.workspace.workspace import VARIABLE
from tests.dashboard.gate.conftest import ELSEWHERE, PASSWORD, forget_logins, login
from tests.ports import free_port, wait_for_port
from tests.server import Server

BROWSER = {**ELSEWHERE, "Accept": "text/html"}

STREAM = "/_stcore/stream"

RESEARCHERS = (
    "/", "/explore", "/studies", "/results", "/_stcore/health", "/_stcore/host-config", "/_stcore/metrics",
    "/_stcore/upload_file/x/y", "/media/x.png", "/component/x/y", "/static/js/index.js", "/app/static/x",
    "/index.html", "/favicon.png", "/run", "/run/", "/run/demo/x", "/run/../studies",
    "/run/demo%2f..%2f..%2fstudies", "/runner/../", "/runner/x/y", "/api", "/api/v1", "/api/v1/", "/api/v1/x",
    "/api/v1/entry/x", "/api/v2/state", "/assets/demo", "/assets/x/y/z", "//run/demo", "/RUN/demo", "/login/x",
    "/auth/login", "/oauth2callback", "/docs", "/docs/index.html", "/draft/demo", "/draft/demo/en/consent/state",
    "/heatmap",
    "/openapi.json", "/.streamlit/secrets.toml", "/foretell.db",
)  # fmt: skip

PAGES = {
    "/", "/explore", "/studies", "/results", "/docs", "/docs/index.html", "/draft/demo", "/draft/demo/en/consent/state",
    "/run/../studies", "/runner/../",  # the client of these tests tidies them
}  # fmt: skip
"""Those at which a browser is sent to the login page; nothing is at the other addresses that a person opens."""


def test_the_gate_knows_every_page() -> None:
    """Catches a new page that a browser without a login is told not to exist."""
    assert {"", "help", "docs", "draft", *pages.PAGES} == gate.PAGES


def check_refusal(shown: httpx.Response, path: str) -> None:
    """Check that a browser without a login gets the login page, or a sentence where there is no page."""
    if path in PAGES:
        assert (shown.status_code, shown.headers["location"]) == (303, "/login")
    else:
        assert (shown.status_code, shown.text) == (404, gate.ELSEWHERE)


def get(server: Server, path: str, headers: dict[str, str]) -> httpx.Response:
    """The path as it is written: a client would tidy it up."""
    with httpx.Client() as http:
        url = httpx.URL(server.url).copy_with(raw_path=path.encode())
        return http.send(http.build_request("GET", url, headers=headers))


def stream_code(server: Server, headers: dict[str, str]) -> int:
    """101 where the websocket of the pages opens, else the refusal's code."""
    here = socket.create_connection(("127.0.0.1", server.port), 10)
    host = headers.get("Host", f"127.0.0.1:{server.port}")
    extra = {key: value for key, value in headers.items() if key != "Host"}
    try:
        with connect(f"ws://{host}{STREAM}", additional_headers=extra, sock=here) as opened:
            return int(opened.response.status_code)  # type: ignore[union-attr]
    except InvalidStatus as refused:
        return int(refused.response.status_code)


@pytest.mark.parametrize("path", RESEARCHERS)
def test_without_a_password_nothing_but_the_participants_is_served(server: Server, path: str) -> None:
    """Whoever asks, also at this machine under its own name: a proxy on it looks the same."""
    for headers in (ELSEWHERE, {}):
        assert get(server, path, headers).status_code == 401
    check_refusal(get(server, path, BROWSER), path)


def test_a_login_link_lets_in_until_there_is_a_password(server: Server) -> None:
    """Only its secret does: no other, no empty one, and none after its time or after a password."""
    with Service(server.home) as service:
        path = service.access.login_link()
    assert "python foretell.py login" in get(server, "/login", {}).text
    for wrong in ("/login?key=", "/login?key=x", path[:-1], path + "x", path.replace("key", "token")):
        assert "set-cookie" not in get(server, wrong, BROWSER).headers
    let_in = get(server, path, BROWSER)
    assert (let_in.status_code, let_in.headers["location"], let_in.headers["referrer-policy"]) == (
        303, "/", "same-origin",
    )  # fmt: skip
    cookie = {"Cookie": let_in.headers["set-cookie"].split(";")[0]}
    for inside in ("/", "/_stcore/health", "/studies"):
        assert get(server, inside, cookie).status_code == 200, inside
    assert stream_code(server, {**cookie, "Origin": server.url}) == 101
    with Service(server.home) as service:
        service.access.set_password(PASSWORD)
    try:
        assert get(server, "/", cookie).status_code == 401
        assert get(server, path, {}).status_code == 401
    finally:
        forget_logins(server)


def test_a_login_link_ends(tmp_path: Path) -> None:
    now = [10**18]
    with Service(tmp_path, clock=lambda: now[0]) as service:
        key = service.access.login_link().partition("=")[2]
        now[0] += LINK_NS
        with pytest.raises(Refusal, match="unknown, used or expired"):
            service.access.login_by_link(key)
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert key.encode() not in kept


def test_a_login_link_lets_in_once_and_ends_the_one_before(tmp_path: Path) -> None:
    """Catches links of every start of the server, each of which opens the administrator's pages for 30 days."""
    with Service(tmp_path) as service:
        first, second = (service.access.login_link().partition("=")[2] for _ in range(2))
        for wrong in (first, ""):
            with pytest.raises(Refusal, match="unknown, used or expired"):
                service.access.login_by_link(wrong)
        token = service.access.login_by_link(second)
        with pytest.raises(Refusal, match="unknown, used or expired"):
            service.access.login_by_link(second)
        account_link = service.access.make_account_link("ada@example.org").partition("=")[2]
        service.access.login_link()
        assert service.access.find_invited(account_link) == "ada@example.org"
        assert service.access.find_login_state(token) == "in"


NGINX = """
daemon off;
pid {folder}/nginx.pid;
error_log stderr;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{behind}; }} }}
}}
"""


@pytest.mark.skipif(shutil.which("nginx") is None, reason="no nginx; on Debian: apt install nginx-light")
def test_nginx_as_it_comes_opens_nothing(server: Server, tmp_path: Path) -> None:
    """Its plain ``proxy_pass`` names this machine in Host and says nothing of whom it asks for."""
    port = free_port()
    (tmp_path / "nginx.conf").write_text(NGINX.format(folder=tmp_path, port=port, behind=server.port))
    with subprocess.Popen(["nginx", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]) as nginx:
        try:
            wait_for_port(port)
            elsewhere = {"Host": "study.example.org", "Accept": "text/html"}
            assert httpx.get(f"http://127.0.0.1:{port}/run/demo", headers=elsewhere).status_code == 200
            for path in ("/", "/studies", "/_stcore/health"):
                assert httpx.get(f"http://127.0.0.1:{port}{path}").status_code == 401
                check_refusal(httpx.get(f"http://127.0.0.1:{port}{path}", headers=elsewhere), path)
        finally:
            nginx.terminate()


@pytest.mark.parametrize("path", RESEARCHERS)
def test_with_a_password_a_login_is_asked_for_everywhere(guarded: Server, path: str) -> None:
    for headers in (ELSEWHERE, {}):
        assert get(guarded, path, headers).status_code == 401
    check_refusal(get(guarded, path, BROWSER), path)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
def test_no_other_verb_gets_past(guarded: Server, method: str) -> None:
    for path in ("/", "/_stcore/upload_file/a/b", "/run/demo", "/api/v1/state", "/runner/runner.js"):
        if (method, path) in {("HEAD", "/run/demo"), ("HEAD", "/api/v1/state"), ("HEAD", "/runner/runner.js")}:
            continue  # what GET may, HEAD may
        assert httpx.request(method, guarded.url + path, headers=ELSEWHERE).status_code == 401, path


def test_every_route_of_streamlit_is_behind_the_gate() -> None:
    """The list above may age: whatever routes this Streamlit has, none of the public ones matches a path of theirs."""
    from dashboard.app import ROUTES

    class Nothing:
        def __getattr__(self, _: str) -> Any:
            return self

    theirs = [str(getattr(route, "path", "")) for route in create_streamlit_routes(Nothing())]  # type: ignore[arg-type]
    assert len(theirs) > 10
    for path in theirs:
        filled = path.replace("{path:path}", "x/y")
        scope = {"type": "http", "path": filled, "method": "GET", "root_path": "", "headers": []}
        assert not any(route.matches(scope)[0].value for route in ROUTES if isinstance(route, Route)), path


def test_the_websocket_is_closed_too(guarded: Server) -> None:
    """A page behind a door is no use if its websocket is not."""
    assert stream_code(guarded, ELSEWHERE) == 403
    assert stream_code(guarded, {}) == 403
    cookie = {"Cookie": f"{COOKIE}={login(guarded).cookies[COOKIE]}"}
    assert stream_code(guarded, {**ELSEWHERE, **cookie, "Origin": "http://study.example.org"}) == 101
    assert stream_code(guarded, {**ELSEWHERE, **cookie, "Origin": "http://evil.example"}) == 403
    # Streamlit itself would welcome every page that another program of this machine serves.
    assert stream_code(guarded, {**ELSEWHERE, **cookie, "Origin": "http://localhost:9999"}) == 403
    assert stream_code(guarded, {**ELSEWHERE, "Cookie": f"{COOKIE}=made-up"}) == 403


def test_a_participant_reaches_her_own_pages_and_nothing_else(guarded: Server) -> None:
    """The whole way from elsewhere, without a password."""
    with httpx.Client(base_url=guarded.url, headers=ELSEWHERE) as http:
        for path in ("/run/demo", "/runner/runner.js", "/runner/runner.css"):
            assert http.get(path).status_code == 200
        assert http.post("/api/v1/entry", json={"study": "demo"}).status_code == 200
        http.headers["X-Session-Token"] = http.post("/api/v1/begin", json={"study": "demo"}).json()["token"]
        http.post("/api/v1/consent", json={"agreed": True})
        http.post("/api/v1/ready", json={"stage": "instructions"})
        state = http.post("/api/v1/ready", json={"stage": "example"}).json()
        assert state["stage"] == "main"
        pictures = http.get("/api/v1/preload").json()
        assert http.get(f"/assets/demo/{pictures[0]}").headers["content-type"] == "image/webp"
        http.cookies.set(COOKIE, http.headers["X-Session-Token"])
        assert http.get("/studies").status_code == 401


def test_a_preview_is_the_researchers(server: Server) -> None:
    """Catches a participant who looks at the other conditions by ``?preview=both``."""
    sent = {"study": "demo", "preview": True, "condition": "both"}

    def preview(headers: dict[str, str], http: httpx.Client) -> int:
        return http.post("/api/v1/begin", json=sent, headers=headers).status_code

    with httpx.Client(base_url=server.url) as http:
        assert (preview({}, http), preview(ELSEWHERE, http)) == (401, 401)
    with httpx.Client(base_url=server.url, cookies=server.login()) as http:
        assert preview({}, http) == 201
    forget_logins(server)


def test_login_and_logout(guarded: Server) -> None:
    with httpx.Client(base_url=guarded.url, headers=BROWSER) as http:
        assert 'data-standing="out"' in http.get("/login").text
        reply = http.post("/login", data={"password": PASSWORD})
        assert (reply.status_code, reply.headers["location"]) == (303, "/")
        cookie = reply.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert f"max-age={LOGIN_NS // 10**9}" in cookie
        assert "secure" not in cookie  # over plain HTTP it would not come back
        assert http.get("/").status_code == 200
        assert 'data-standing="in"' in http.get("/login").text
        kept = http.cookies[COOKIE]
        assert http.post("/login/out").status_code == 303
        http.cookies.set(COOKIE, kept)
        assert http.get("/studies", headers={"Accept": "*/*"}).status_code == 401  # ended here, not only in the browser


def test_behind_tls_the_cookie_is_for_tls_only(guarded: Server) -> None:
    """uvicorn takes the scheme from a proxy on this machine."""
    reply = login(guarded, **{"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9"})
    assert "secure" in reply.headers["set-cookie"].lower()


@pytest.mark.parametrize("path", ["/run/demo", "/login", "/runner/runner.js", "/api/v1/time", "/", "/_stcore/health"])
def test_behind_tls_every_reply_asks_for_tls_alone(server: Server, path: str) -> None:
    """Catches a page, an image or a refusal that a browser may ask for without TLS again; without TLS none says so."""
    name = "Strict-Transport-Security"
    assert get(server, path, {"X-Forwarded-Proto": "https"}).headers[name] == "max-age=31536000"
    assert name not in get(server, path, {}).headers


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}]
)
def test_another_site_can_neither_log_in_nor_out(guarded: Server, headers: dict[str, str]) -> None:
    assert login(guarded, **headers).status_code == 403
    assert httpx.post(f"{guarded.url}/login/out", headers={**ELSEWHERE, **headers}).status_code == 403


def test_the_researchers_pages_cannot_be_framed_or_guessed_at(guarded: Server) -> None:
    """Streamlit sends neither a policy nor nosniff; participants' pages keep their stricter one."""
    cookie = {"Cookie": f"{COOKIE}={login(guarded).cookies[COOKIE]}"}
    for path in ("/", "/studies", "/_stcore/health", "/index.html"):
        headers = get(guarded, path, cookie).headers
        assert "frame-ancestors 'self'" in headers["content-security-policy"], path
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "same-origin"), path
    assert "unsafe" not in get(guarded, "/run/demo", {}).headers["content-security-policy"]


def test_a_slash_too_many_leads_to_the_study(server: Server) -> None:
    reply = get(server, "/run/demo/?pid=7&sig=x", ELSEWHERE)
    assert (reply.status_code, reply.headers["location"]) == (307, "/run/demo?pid=7&sig=x")
    assert get(server, "/run/demo/", ELSEWHERE).headers["location"] == "/run/demo"
    assert get(server, "/run/a%0d%0aSet-Cookie: x/", ELSEWHERE).headers["location"] == "/run/a%0D%0ASet-Cookie%3A%20x"


def test_the_verb_sets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    done = CliRunner().invoke(cli.build_app(), ["password"], input=f"{PASSWORD}\n{PASSWORD}\n", catch_exceptions=False)
    assert done.exit_code == 0
    assert PASSWORD not in done.output
    with Service(tmp_path) as service:
        assert service.access.login(PASSWORD, "x")
    with pytest.raises(ForetellError, match="has 5 characters"):
        CliRunner().invoke(cli.build_app(), ["password"], input="short\nshort\n", catch_exceptions=False)
