"""Texts and names that try to be HTML, Markdown, scripts or endless: seen as they were written, on every page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import tests.conftest
from study.service import Service
from study.simulate import simulate
from tests.browser.participation import agree, wait_for_trial
from tests.browser.test_pages import finished
from tests.server import Server, serving

pytestmark = pytest.mark.browser
EVIL = "<img src=x onerror=window.hit=1><script>window.hit=1</script>"
LINK = "[x](javascript:window.hit=1)"
LONG = "Donaudampfschiff" * 300
NAMES = (f"{EVIL}a", f"{LINK}b", "Donaudampfschiff" * 8, "$x^2$ **d**", "`e`", "{name} f")
TEXTS = {
    "title": f"{EVIL}{LINK}",
    "consent": f"{EVIL}\n\n{LONG}",
    "instructions": LONG,
    "question": f"{EVIL}{LONG[:80]}?",
}
CONFIG: dict[str, Any] = {
    "questionnaire": [
        {"id": "a", "kind": "choice", "text": f"{EVIL}{LONG}", "options": [f"{EVIL}{LONG}", "no"]},
        {"id": "b", "kind": "scale", "text": LONG, "low": EVIL, "high": LONG},
    ],
    "consent": {"boxes": [f"{EVIL}{LONG}"]},
}
HARMED = "() => [window.hit ?? 0, document.querySelectorAll('img[src=x], a[href^=javascript]').length]"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("hostile")
    with Service(home) as service, pytest.MonkeyPatch.context() as patched:
        patched.setattr(tests.conftest, "CATEGORIES", NAMES)
        options: dict[str, Any] = {"trials": 6, "practice": 1, "texts": TEXTS, "config": CONFIG, "side": 48}
        folder = tests.conftest.write_bundle(home / "bundles" / "evil-00", name="evil", **options)
        simulate(service, service.researcher.open_study(folder, per_condition=2), 4, {"guesser": 1.0}, 0)
    with serving(home) as running:
        yield running


@pytest.fixture
def page(chromium: Browser, server: Server) -> Iterator[Page]:
    with chromium.new_context(viewport={"width": 700, "height": 720}) as context:
        server.let_in(context)
        yield context.new_page()


def harmless(page: Page, section: str) -> None:
    """Nothing ran, and nothing pushes the page wider than its window."""
    page.wait_for_selector(f"#{section}:not([hidden])")
    assert page.evaluate(HARMED) == [0, 0], section
    assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0, section


def test_a_participants_page_shows_what_was_written(page: Page, server: Server) -> None:
    """Catches a text of the study that is parsed as HTML, or a word without an end that hides the buttons."""
    page.goto(f"{server.url}/run/evil?preview=both")
    harmless(page, "consent")
    expect(page.locator("#consent .prose p").first).to_have_text(EVIL)
    assert page.title() == TEXTS["title"]
    agree(page)
    harmless(page, "instructions")
    page.click("#understood")
    harmless(page, "example")
    page.click("#seen")
    page.click("#begin")
    wait_for_trial(page, 1)
    harmless(page, "trial")
    assert {page.text_content(f"#{side} span") for side in ("left", "right")} < set(NAMES)
    page.keyboard.press("f")
    page.click("#next")
    page.click("#begin")
    for number in range(1, 7):
        wait_for_trial(page, number)
        harmless(page, "trial")
        page.keyboard.press("f")
    harmless(page, "questionnaire")
    page.check('#questionnaire input[name="a"][value="no"]')
    page.check('#questionnaire input[name="b"][value="4"]')
    page.click("#answer-items")
    harmless(page, "end")


@pytest.mark.parametrize(
    "path", ["studies", *(f"studies?study=evil&section={name}" for name in ("Trials", "Export")), "monitor", "results"]
)
def test_a_researchers_page_runs_nothing(page: Page, server: Server, path: str) -> None:
    """Catches a title or a category, which may be a stranger's folder name, that is shown as HTML or Markdown."""
    page.goto(f"{server.url}/{path}")
    finished(page)
    assert page.evaluate(HARMED) == [0, 0]
