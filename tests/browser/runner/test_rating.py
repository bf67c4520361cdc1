"""The task `rating` in a real browser: seven levels on a phone, and no feedback after practice."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.participation import keep_traffic, newest, query, wait_for_trial
from tests.browser.runner.conftest import begin_trials, serve_task
from tests.browser.runner.test_scale import DESKTOP, PHONE, TABLET, assert_fits

pytestmark = pytest.mark.browser


def test_a_rating_follows_practice_without_feedback(chromium: Browser, tmp_path: Path) -> None:
    """Catches a page that waits for feedback which never comes, seven buttons that a phone cannot have, a level stored
    as another one, and a true name in what the network carried."""
    settings = {"trials": {"levels": 7}}
    with serve_task(tmp_path, "rating", trials=3, practice=1, settings=settings) as server:
        context = chromium.new_context(viewport=DESKTOP, has_touch=True)  # type: ignore[arg-type]
        carried = keep_traffic(context)
        page = context.new_page()
        begin_trials(page, server)
        assert_fits(page)
        page.keyboard.press("7")
        page.click("#begin")  # the page before the main trials follows at once
        wait_for_trial(page, 1)
        page.set_viewport_size(TABLET)  # type: ignore[arg-type]
        assert_fits(page)
        names = page.locator("#answers button").all_inner_texts()
        page.keyboard.press("2")
        wait_for_trial(page, 2)
        page.set_viewport_size(PHONE)  # type: ignore[arg-type]
        wait_for_trial(page, 2)
        assert_fits(page)
        page.get_by_role("button", name="Strongly agree").tap()
        wait_for_trial(page, 3)
        page.get_by_role("button", name="Neither agree nor disagree").click()
        page.wait_for_selector("#end:not([hidden])")
        expect(page.locator("#feedback")).to_be_hidden()
        assert "true name" not in "\n".join(carried)
        context.close()
        letters = "abcdefg" if names[0].endswith("Strongly disagree") else "gfedcba"
        sql = "SELECT side, choice, input FROM response WHERE session_id = ? ORDER BY trial_index"
        stored = query(server, sql, newest(server))
        assert stored[:2] == [("7", letters[6], "key"), ("2", letters[1], "key")]
        assert [(choice, how) for _, choice, how in stored[2:]] == [("g", "touch"), ("d", "mouse")]
