"""Keys of the study's own, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from study.service import Service
from tests.browser.participation import agree, newest, query, wait_for_trial
from tests.conftest import write_bundle
from tests.server import Server, serving

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("keys")
    config = {"keys": {"left": "y", "right": "-"}, "pacing": {"confidence": True}}
    with Service(home) as service:
        service.researcher.open_study(
            write_bundle(home / "bundle", name="demo", trials=2, practice=1, config=config), 20
        )
    with serving(home) as running:
        yield running


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    with chromium.new_context() as context:
        yield context.new_page()


def answered(server: Server) -> list[tuple[str, str]]:
    sql = "SELECT side, input FROM response WHERE session_id = ? ORDER BY trial_index"
    return query(server, sql, newest(server))  # type: ignore[return-value]


def test_the_studys_keys_answer_and_no_others(page: Page, server: Server) -> None:
    """Catches keys that are shown and not heard, heard and not shown, or the usual ones that still answer, also after a
    reload in the middle of the trials."""
    page.goto(f"{server.url}/run/demo")
    agree(page)
    page.click("#understood")
    page.wait_for_selector("#example:not([hidden])")
    assert page.locator("#keys kbd").all_text_contents() == ["Y", "-"]
    assert page.locator("#mini kbd").all_text_contents() == ["Y", "-"]
    page.click("#seen")
    page.click("#begin")
    for number, key in ((1, "-"), (1, "y"), (2, "Y")):
        if key == "y":
            page.click("#next")
            page.wait_for_selector("#ready:not([hidden])")
            page.reload()  # straight to the trials
            page.click("#begin")
        wait_for_trial(page, number)
        assert page.locator("#answers kbd").all_text_contents() == ["Y", "-"]
        for old in "fj":
            page.keyboard.press(old)
        page.wait_for_timeout(100)
        expect(page.locator("#confidence")).to_be_hidden()
        page.keyboard.press(key)
        page.wait_for_selector("#confidence:not([hidden])")
        page.keyboard.press("4")
    page.wait_for_selector("#end:not([hidden])")
    assert answered(server) == [("right", "key"), ("left", "key"), ("left", "key")]
