"""What a participant typed and did not send yet: kept in her browser through reloads and other tabs, erased after."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from study.service import Service
from tests.browser.participation import ITEMS, at_main, newest, query
from tests.conftest import PATIENCE_S, write_bundle
from tests.server import Server, serving

pytestmark = pytest.mark.browser
TEXT = "Zeile eins\n<b>zwei</b> \u9c7c"
KEPT = """() => new Promise((resolve) => {
  const request = indexedDB.open("foretell", 1);
  request.onsuccess = () => {
    const all = request.result.transaction("kept").objectStore("kept").getAll();
    all.onsuccess = () => resolve(JSON.stringify(all.result));
  };
})"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A study of one trial and a questionnaire of every kind."""
    home = tmp_path_factory.mktemp("drafts")
    with Service(home) as service:
        folder = write_bundle(home / "bundle", name="demo", trials=1, practice=0, config={"questionnaire": ITEMS})
        service.researcher.open_study(folder, per_condition=20)
    with serving(home) as running:
        yield running


@pytest.fixture
def browser(chromium: Browser) -> Iterator[BrowserContext]:
    with chromium.new_context() as context:
        yield context


def at_questionnaire(server: Server, person: str) -> str:
    """The link of somebody who has answered the trial."""
    link = at_main(server, "demo", 0, recruit={"person": person})
    sent = {"trial_index": 0, "attempt_id": str(uuid.uuid4()), "side": "left", "input": "key", "rt_ms": 500}
    headers = {"X-Session-Token": link.partition("#")[2]}
    assert httpx.post(f"{server.url}/api/v1/responses", json=sent, headers=headers).status_code == 201
    return link


def type_in(page: Page) -> None:
    """Half of the questionnaire, until the browser has kept it."""
    page.check('#questionnaire input[name="hard"][value="3"]')
    page.fill("#questionnaire textarea", TEXT)
    until_kept(page, True)


def expect_typed(page: Page) -> None:
    expect(page.locator("#questionnaire textarea")).to_have_value(TEXT)
    expect(page.locator('#questionnaire input[name="hard"][value="3"]')).to_be_checked()
    assert page.locator('#questionnaire input[name="which"]:checked').count() == 0


def until_kept(page: Page, kept: bool) -> None:
    for _ in range(20 * PATIENCE_S):
        if ("zwei" in page.evaluate(KEPT)) == kept:
            return
        page.wait_for_timeout(50)
    raise AssertionError(page.evaluate(KEPT))


def test_what_was_typed_goes_along_until_it_is_sent(browser: BrowserContext, server: Server) -> None:
    """Catches a text that a reload, another tab or the link opened anew loses, that a second person at the computer is
    shown, or that stays in the browser after it was sent."""
    link = at_questionnaire(server, "first")
    one, two = browser.new_page(), browser.new_page()
    one.goto(link)
    type_in(one)
    one.reload()
    expect_typed(one)
    two.goto(link)
    two.click("#again")
    expect_typed(two)
    with Service(server.home) as service:
        [signed] = service.researcher.personal_links("demo", ["first"])
    two.goto(server.url + signed)  # a new token
    expect_typed(two)
    other = browser.new_page()
    other.goto(at_questionnaire(server, "second"))
    expect(other.locator("#questionnaire textarea")).to_have_value("")
    two.check('#questionnaire input[name="which"][value="by guessing"]')
    two.click("#answer-items")
    two.wait_for_selector("#end:not([hidden])")
    until_kept(two, False)
    rows = query(server, "SELECT item, answer_json FROM questionnaire")
    assert {item: json.loads(kept) for item, kept in rows} == {"hard": 3, "which": "by guessing", "how": TEXT}


@pytest.mark.parametrize("way", ["button", "link"])
def test_who_withdraws_leaves_no_text_in_the_browser(browser: BrowserContext, server: Server, way: str) -> None:
    """Catches a text that outlives the withdrawal, by the page's own button or in a tab that knows the code alone."""
    page = browser.new_page()
    page.goto(at_questionnaire(server, f"who goes by {way}".replace(" ", "-")))
    type_in(page)
    page.click("#leave")
    if way == "link":
        code = page.input_value("#withdraw-code")
        page.close()
        page = browser.new_page()
        page.goto(f"{server.url}/run/demo#withdraw")
        page.fill("#withdraw-code", code)
    page.click("#erase")
    page.wait_for_selector("#end:not([hidden])")
    until_kept(page, False)
    assert query(server, "SELECT stage FROM session WHERE session_id = ?", newest(server)) == [("withdrawn",)]
