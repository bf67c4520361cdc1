"""``python foretell.py docs``: the site is whole, and a reader's browser asks no other host for anything."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOADING = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "link": "href",
    "source": "src",
    "video": "src",
    "audio": "src",
}
IDLE_LINKS = {"canonical", "author", "license", "next", "prev", "search", "index"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="the browser of the test is a shell script"),
]


class Requests(HTMLParser):
    """Collects what a browser would load for a page: scripts, styles, images, frames."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note the address that the element loads."""
        values = dict(attributes)
        address = values.get(LOADING.get(tag, ""))
        if address and not (tag == "link" and set((values.get("rel") or "").split()) <= IDLE_LINKS):
            self.urls.append(address)


def list_requests(text: str) -> list[str]:
    """List what a page loads, its inline styles included."""
    parser = Requests()
    parser.feed(text)
    return parser.urls + re.findall(r"(?:@import|url\()\s*[\"']?([^\"')\s]+)", text)


def is_external(url: str) -> bool:
    """Tell whether an address leads to another host."""
    return re.match(r"(https?:)?//", url) is not None


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The built site, and what the command asked the browser to open."""
    folder = tmp_path_factory.mktemp("site")
    opened, browser = folder / "opened.txt", folder / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > "{opened}"\n')
    browser.chmod(browser.stat().st_mode | stat.S_IEXEC)
    environment = {**os.environ, "BROWSER": f"{browser} %s"}
    command = [sys.executable, str(ROOT / "foretell.py"), "docs", "--out", str(folder / "pages")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "pages", opened.read_text().strip()


def test_the_command_builds_without_a_warning_and_opens_the_start_page(site: tuple[Path, str]) -> None:
    """A broken link, a page outside the navigation, a docstring that cannot be read."""
    folder, opened = site
    assert opened == (folder / "index.html").as_uri()
    assert (folder / "docs" / "index.html").is_file()


def test_every_page_is_on_the_site(site: tuple[Path, str]) -> None:
    """A page that exists in the repository only."""
    folder, _ = site
    pages = [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "docs" / "notebooks").glob("*.ipynb"),
        ROOT / "benchmarks" / "README.md",
        ROOT / "CHANGELOG.md",
    ]
    expected = {page.relative_to(ROOT).with_suffix(".html").as_posix() for page in pages if "_build" not in page.parts}
    assert {page for page in expected if not (folder / page).is_file()} == set()
    assert len(expected) > 60


def test_notebooks_have_their_outputs(site: tuple[Path, str]) -> None:
    """A notebook of which the site shows only the code."""
    folder, _ = site
    page = (folder / "docs" / "notebooks" / "explain-a-network.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == 3
    assert "same values: True" in page


def test_the_api_reference_has_the_public_functions(site: tuple[Path, str]) -> None:
    """A reference that came out empty because nothing could be imported."""
    folder, _ = site
    page = (folder / "docs" / "reference" / "api" / "core.attribution.gradients.html").read_text(encoding="utf-8")
    assert 'id="core.attribution.gradients.plain.integrated_gradients"' in page
    assert "arXiv:1703.01365" in page


def test_nothing_is_loaded_from_another_host(site: tuple[Path, str]) -> None:
    """A font, a script or an icon from a content network, which would see every reader."""
    folder, _ = site
    texts = {path: path.read_text(encoding="utf-8") for path in (*folder.rglob("*.html"), *folder.rglob("*.css"))}
    assert sum(path.suffix == ".html" for path in texts) > 80
    asked = {url for text in texts.values() for url in list_requests(text)}
    assert {url for url in asked if is_external(url)} == set()


def test_the_search_for_requests_finds_them() -> None:
    """Negative control: each kind of request that the check above must see."""
    page = """<script src="https://a/x.js"></script><link rel="stylesheet" href="//b/x.css"><img src="http://c/x.png">
    <style>@import "https://d/x.css"; p { background: url('https://e/x.png') }</style>
    <a href="https://f">a link that is only followed by hand</a><link rel="canonical" href="https://g">"""
    assert [url for url in list_requests(page) if is_external(url)] == [
        "https://a/x.js",
        "//b/x.css",
        "http://c/x.png",
        "https://d/x.css",
        "https://e/x.png",
    ]
