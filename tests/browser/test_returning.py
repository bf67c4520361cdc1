"""A link with an id in a real browser: resumed where it was started, elsewhere by the private code only."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.participation import agree, newest, query
from tests.server import Server

pytestmark = pytest.mark.browser


def test_a_guessed_id_is_asked_for_the_private_code(chromium: Browser, server: Server) -> None:
    link = f"{server.url}/run/demo?pid=17"
    with chromium.new_context() as mine, chromium.new_context() as other:
        page, stranger = mine.new_page(), other.new_page()
        page.goto(link)
        agree(page)
        page.wait_for_selector("#instructions:not([hidden])")
        person = newest(server)
        stranger.goto(link)
        stranger.wait_for_selector("#return:not([hidden])")
        stranger.fill("#return-code", "K7QHTM2XWPAC")
        stranger.click("#return-go")
        stranger.wait_for_selector("#return:not([hidden])")
        with page.expect_response("**/api/v1/ready") as replied:  # as the page has it: another request needs its tab
            page.click("#understood")  # still theirs
        code = replied.value.json()["withdrawal_code"]
        again = mine.new_page()
        again.goto(link)  # the browser's own secret
        again.wait_for_selector("#check:not([hidden]), #example:not([hidden])")
        stranger.fill("#return-code", code.lower())
        stranger.click("#return-go")
        stranger.wait_for_selector("#check:not([hidden]), #example:not([hidden])")
        expect(stranger.locator("#return")).to_be_hidden()
    assert newest(server) == person
    assert query(server, "SELECT n_resumes FROM session WHERE session_id = ?", person) == [(2,)]
