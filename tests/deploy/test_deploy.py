"""The files of `deploy`: each is read by the program it is for, and nginx serves a page through its own."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml
from playwright.sync_api import Browser, expect

from study.service import Service
from tests.conftest import write_bundle
from tests.ports import free_port, wait_for_port
from tests.server import ROOT, Server, serving

DEPLOY = ROOT / "deploy"
MOST_EXPOSED = 30
"""Tenths of systemd's exposure level, from 0 (confined) to 100; a unit without hardening has 96."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("deploy")
    with Service(home) as service:
        folder = write_bundle(home / "bundle", name="demo", trials=1, practice=0, side=8)
        service.researcher.open_study(folder, per_condition=1)
    with serving(home) as running:
        yield running


@pytest.fixture
def proxy(server: Server, tmp_path: Path) -> Iterator[str]:
    """nginx with the shipped server block; its address."""
    with run_nginx(server, tmp_path) as address:
        yield address


@contextmanager
def run_nginx(server: Server, folder: Path, path: str = "/", passed: str = "") -> Iterator[str]:
    """Run nginx with the shipped server block, without TLS and on a port of its own; yield its address.

    Foretell is at a ``path``, which becomes the path ``passed`` where that is not empty.
    """
    if shutil.which("nginx") is None:
        pytest.skip("no nginx; on Debian: apt install nginx-light")
    port = free_port()
    block = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    block = re.sub(r"ssl_certificate\w* [^;]+;", "", block).replace("listen 443 ssl", f"listen 127.0.0.1:{port}")
    block = block.replace("127.0.0.1:8501", f"127.0.0.1:{server.port}{passed}").replace(
        "study.example.org", "127.0.0.1"
    )
    block = block.replace("location / {", f"location {path} {{")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "".join(f"{kind}_temp_path {folder / kind};" for kind in kinds)
    configuration = f"daemon off; pid {folder}/pid; error_log stderr; events {{}} http {{ {folders} {block} }}"
    (folder / "nginx.conf").write_text(configuration, encoding="utf-8")
    with subprocess.Popen(["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]) as nginx:
        try:
            wait_for_port(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            nginx.terminate()


@pytest.mark.browser
def test_a_page_behind_nginx_on_another_port_is_not_blank(server: Server, proxy: str, chromium: Browser) -> None:
    """Catches a Host without its port: the browser's origin has it, and Streamlit refuses the page's connection."""
    with Service(server.home) as service:
        link = service.access.login_link()
    with chromium.new_context() as context:
        page = context.new_page()
        page.goto(proxy + link)
        expect(page.locator("h1").first).to_be_visible()


BELOW = "/study/"
HOST, PARTS = "Foretell needs a host name of its own", "This page did not load completely."
BROKEN = {
    "kept": ("", dict.fromkeys(("run/demo", "", "studies", "login"), HOST)),
    "taken away": ("/", {"run/demo": PARTS, "login": HOST}),
}
"""By whether the proxy passes the path on: what each address says."""


@pytest.mark.browser
@pytest.mark.parametrize(("passed", "said"), BROKEN.values(), ids=BROKEN)
def test_below_a_path_a_sentence_says_what_is_wrong(
    server: Server, tmp_path: Path, chromium: Browser, passed: str, said: dict[str, str]
) -> None:
    """Catches a page of three dots, a redirect to another site's login, and a form that sends a password there."""
    with run_nginx(server, tmp_path, BELOW, passed) as address, chromium.new_context() as context:
        page = context.new_page()
        for path, sentence in said.items():
            page.goto(f"{address}{BELOW}{path}")
            expect(page.get_by_text(sentence)).to_be_visible()
            expect(page).to_have_url(f"{address}{BELOW}{path}")
            assert page.locator("form, input, button").filter(visible=True).count() == 0


def test_participants_behind_nginx_have_addresses_of_their_own(proxy: str) -> None:
    """Catches a proxy whose participants all count as one address: the 42nd start was refused."""
    codes = set()
    for _ in range(2):
        reply = httpx.post(f"{proxy}/api/v1/entry", json={"study": "demo"})
        codes.add(reply.status_code)
    assert codes == {200}


def test_health_says_whether_responses_are_stored(server: Server) -> None:
    assert httpx.get(f"{server.url}/health").json() == {"stores_responses": True}


def test_a_proxy_that_is_not_trusted_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a proxy in another container whose X-Forwarded-For is dropped without a word."""
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "192.0.2.1")
    with Service(tmp_path) as service:
        folder = write_bundle(tmp_path / "bundle", name="demo", trials=1, practice=0, side=8)
        service.researcher.open_study(folder, per_condition=1)
    with serving(tmp_path) as running:
        for _ in range(2):
            sent = {"X-Forwarded-For": "198.51.100.7"}
            assert httpx.post(f"{running.url}/api/v1/begin", json={"study": "demo"}, headers=sent).status_code == 201
        assert running.log().count("sends X-Forwarded-For and is not trusted") == 1


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze (Debian: systemd)")
def test_the_systemd_unit_is_confined_and_downloads_nothing(tmp_path: Path) -> None:
    """Catches a directive that systemd does not know, and a unit that may write anywhere."""
    unit = (DEPLOY / "foretell.service").read_text(encoding="utf-8")
    [started] = re.findall(r"^ExecStart=(\S+) ", unit, re.MULTILINE)
    assert started == "/srv/foretell/.venv/bin/python"  # an interpreter without the packages would install them
    file = tmp_path / "foretell.service"
    file.write_text(unit.replace(started, "/bin/true").replace("User=foretell", "User=daemon"), encoding="utf-8")
    said = subprocess.run(["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False)
    assert "foretell.service" not in said.stderr, said.stderr
    command = ["systemd-analyze", "security", "--offline=yes", f"--threshold={MOST_EXPOSED}", "--no-pager", str(file)]
    exposed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert exposed.returncode == 0, exposed.stdout[-400:]


def test_compose_publishes_the_web_server_alone() -> None:
    """Catches a Foretell that answers by plain HTTP on every interface, and a proxy that it does not believe."""
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    assert {name for name, one in services["services"].items() if "ports" in one} == {"caddy"}
    [network] = services["networks"]["inner"]["ipam"]["config"]
    assert services["services"]["foretell"]["environment"]["FORWARDED_ALLOW_IPS"] == network["subnet"]


@pytest.mark.skipif(shutil.which("caddy") is None, reason="no caddy; on Debian: apt install caddy")
def test_caddy_takes_its_file() -> None:
    command = ["caddy", "validate", "--adapter", "caddyfile", "--config", str(DEPLOY / "Caddyfile")]
    assert subprocess.run(command, check=False).returncode == 0
