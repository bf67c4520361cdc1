"""Accounts that want more than they have, by the browser: their uploads, and the paths that they name."""

from __future__ import annotations

import io
import os
import re
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from dashboard.shared.uploads import FOLDER
from study.plan.studyfiles import folder_of
from study.service import Service
from tests.conftest import PATIENCE_S, write_bundle
from tests.dashboard.views.library import image
from tests.server import Server, serving
from tests.study.studies import TINY

pytestmark = pytest.mark.browser
EDITOR, PASSWORD = "editor@example.org", "correct horse battery"
OUTSIDE = "is outside the folders whose files you may name"
MEGABYTE = 2**20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on which an editor has a password."""
    home = tmp_path_factory.mktemp("intruders")
    with Service(home) as service:
        write_bundle(home / "bundles" / "other-0123456789ab", name="other", trials=2, practice=0, side=8)
        folder_of(home).mkdir()
        (folder_of(home) / "tiny.toml").write_text(TINY)
        service.researcher.set_member("tiny", "owner@example.org", "owner")
        service.researcher.set_member("tiny", EDITOR, "editor")
        link = service.researcher.make_account_link(EDITOR)
        service.access.choose_password(link.partition("=")[2], PASSWORD)
    with serving(home) as running:
        yield running


@pytest.fixture
def page(chromium: Browser, server: Server) -> Iterator[Page]:
    """A browser in which the editor is logged in."""
    with chromium.new_context(viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        reply = page.request.post(f"{server.url}/login", form={"person": EDITOR, "password": PASSWORD})
        assert reply.ok
        yield page


def test_code_that_is_uploaded_as_an_image_is_neither_kept_nor_run(page: Page, server: Server, tmp_path: Path) -> None:
    """Catches a zip with Python text named as an image that the automatic check of Design then executes."""
    mark = tmp_path / "mark"
    code = f"from pathlib import Path\nPath({str(mark)!r}).write_text('it ran')\n"
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("red/evil.py.png", code)
        archive.writestr("red/1.png", image(1))
    page.goto(f"{server.url}/library")
    page.locator("input[type=file]").set_input_files(
        [{"name": "evil.zip", "mimeType": "application/zip", "buffer": content.getvalue()}]
    )
    expect(page.get_by_label("Name of the set")).to_have_value("evil")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("1 file was not readable as an image and was left out")).to_be_visible()
    assert [path.name for path in (server.home / "images").rglob("*.*")] == ["1.png"]
    (tmp_path / "evil.py").write_text(code)
    for named in ("../images/evil/red/evil.py.png:build", f"{tmp_path}/evil.py:build"):
        page.goto(f"{server.url}/design?study=tiny&part=Network+and+images")
        expect(page.get_by_text(re.compile("The study can be built|is not on this machine")).first).to_be_visible()
        network = page.get_by_role("combobox", name="Network")
        network.fill(named)
        network.press("Enter")
        if named.startswith("/"):
            expect(page.get_by_test_id("stAlertContentError").first).to_contain_text(OUTSIDE)
        else:  # no Python file by its ending, so a network of torchvision
            expect(page.get_by_text("is not on this machine").first).to_be_visible()
    assert not mark.exists()


def test_uploads_lie_on_disk_and_not_in_the_servers_memory(page: Page, server: Server, tmp_path: Path) -> None:
    """Catches files that Streamlit keeps in the memory of the server that participants use."""
    files = [tmp_path / f"{i}.zip" for i in range(4)]
    for file in files:
        file.write_bytes(os.urandom(60 * MEGABYTE))
    page.goto(f"{server.url}/library")
    upload = page.locator("input[type=file]")
    upload.set_input_files([{"name": "small.zip", "mimeType": "application/zip", "buffer": b"0"}])
    expect(page.get_by_label("Name of the set")).to_have_value("small")
    before = measure_memory(server)
    upload.set_input_files(files)
    deadline = time.monotonic() + PATIENCE_S
    while sum(path.stat().st_size for path in (server.home / FOLDER).iterdir()) < 240 * MEGABYTE:
        assert time.monotonic() < deadline
        page.wait_for_timeout(100)
    expect(page.get_by_text("3.zip")).to_be_attached()
    assert measure_memory(server) - before < 120 * MEGABYTE
    with httpx.Client(base_url=server.url, cookies=read_cookies(page)) as http:
        for path in ("/_stcore/upload_file/nobody/x", "/_stcore/upload_file/../x"):
            assert http.put(path, files={"file": b"0"}).status_code in (400, 404, 405)
        foreign = http.put("/_stcore/upload_file/a/b", files={"file": b"0"}, headers={"Origin": "https://evil.example"})
        assert foreign.status_code == 403


def read_cookies(page: Page) -> dict[str, str]:
    return {str(one["name"]): str(one["value"]) for one in page.context.cookies()}


def measure_memory(server: Server) -> int:
    """Resident bytes of the server's process."""
    process = server._process
    assert process is not None
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
