"""The page Explore in Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.conftest import PATIENCE_MS
from tests.dashboard.views.conftest import OTHER
from tests.server import Server, serving

# Streamlit looks for its own address below the page's first, and finds it above.
LOOKING = "the server responded with a status of 404"

# A drawing that the next one has taken the place of before the browser fetched it.
UNFETCHED = re.compile("Image source error - (.+)")

PENDING = re.compile("Computing …|Waiting")


@pytest.fixture(scope="module")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server over a workspace with a second classifier."""
    home = tmp_path_factory.mktemp("explorer")
    (home / "models").mkdir()
    (home / "models" / "other.py").write_text(OTHER)
    with serving(home) as running:
        yield running


@pytest.fixture(scope="module")
def browser(chromium: Browser, explorer: Server) -> Iterator[BrowserContext]:
    """One researcher's browser for all tests: each test has its own tab, and the scripts are fetched once."""
    with chromium.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True) as context:
        explorer.let_in(context)
        yield context


@pytest.fixture
def page(browser: BrowserContext) -> Iterator[Page]:
    with browser.new_page() as page:
        said: list[str] = []
        hosts: set[str | None] = set()
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
        yield page
        shown = page.locator("img").evaluate_all("all => all.map((one) => one.src)")
        replaced = [text for text in said if (image := UNFETCHED.search(text)) and image[1] not in shown]
        assert [text for text in said if LOOKING not in text and text not in replaced] == []
        assert hosts - {None, ""} == {"127.0.0.1"}


def open_explore(page: Page, address: str) -> Page:
    page.goto(address)
    expect(page.locator("h1")).to_have_text("Explore", timeout=PATIENCE_MS)
    finished(page)
    return page


def finished(page: Page) -> None:
    """The script ran to its end, and nothing is being made."""
    app = page.locator("[data-testid=stApp]")
    # What a view draws last: its buttons, or the captions of the whole set.
    last = page.get_by_role("button", name="Link").or_(page.locator(".grid span")).first
    expect(last).to_be_visible(timeout=PATIENCE_MS)
    ended = {"name": "data-test-script-state", "value": "notRunning", "timeout": PATIENCE_MS}
    expect(app).to_have_attribute(**ended)
    pending = (page.get_by_role("button", name=re.compile("^Stop")), page.get_by_text(PENDING))
    for sign in (*pending, page.get_by_role("img", name=PENDING)):
        expect(sign).to_have_count(0, timeout=PATIENCE_MS)
    expect(app).to_have_attribute(**ended)
    page.wait_for_load_state("networkidle")
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)  # a part whose script the browser still fetches
    expect(page.get_by_test_id("stException")).to_have_count(0)


def origin(page: Page) -> str:
    parts = urlsplit(page.url)
    return f"{parts.scheme}://{parts.netloc}"
