"""A message of the researchers on the participant's page: at the next break, as text, and between no two trials."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from study.service import Service
from tests.browser.participation import at_main, newest, query, wait_for_trial
from tests.conftest import write_bundle
from tests.server import Server, serving

pytestmark = pytest.mark.browser
TEXT = "<img src=x onerror=alert(1)> & {name}\n\nThe server restarts at 15:00."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("messages")
    with Service(home) as service:
        config = {"pacing": {"break_every": 2}}
        folder = write_bundle(home / "bundle", name="demo", trials=4, practice=0, config=config)
        service.researcher.open_study(folder, per_condition=4)
    with serving(home) as running:
        yield running


def test_a_message_waits_for_the_break_and_is_shown_once(chromium: Browser, server: Server) -> None:
    """Catches a message over a trial, one that is read as markup, and one that a reload shows again."""
    with chromium.new_context() as context:
        page = context.new_page()
        dialogs: list[str] = []
        page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        page.goto(at_main(server, "demo", 0))
        page.click("#begin")
        wait_for_trial(page, 1)
        with Service(server.home) as service:
            assert service.researcher.send_message("demo", TEXT) == 1
        page.keyboard.press("f")
        wait_for_trial(page, 2)
        expect(page.locator("#told")).to_be_hidden()
        page.keyboard.press("f")
        read_message(page)
        expect(page.locator("#ready .title")).to_have_text("Time for a break")
        page.reload()
        expect(page.locator("#ready .title")).to_have_text("Welcome back")
        page.click("#begin")
        wait_for_trial(page, 3)
        assert dialogs == []
        sql = "SELECT trial_index, payload_json FROM event WHERE kind = 'message' AND session_id = ?"
        [(trial, payload)] = query(server, sql, newest(server))
        assert trial == 2
        with Service(server.home) as service:
            [sent] = service.researcher.list_messages("demo").to_dict("records")
            assert (sent["shown"], json.loads(payload).keys()) == (1, {"number"})


def read_message(page: Page) -> None:
    expect(page.locator("#told h1")).to_have_text("A message from the researchers")
    expect(page.locator("#told .prose p")).to_have_text(
        ["<img src=x onerror=alert(1)> & {name}", TEXT.split("\n\n")[1]]
    )
    assert page.locator("#told .prose img").count() == 0
    page.keyboard.press("f")  # no response to a trial
    page.click("#told-go")
