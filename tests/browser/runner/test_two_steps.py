"""The task `reliance` in a real browser: two responses in a trial, and what the network carries before the first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from study.bundle import Bundle
from tests.browser.participation import agree, keep_traffic, newest, query, wait_for_trial
from tests.browser.runner.conftest import serve_task
from tests.server import Server

pytestmark = pytest.mark.browser

TRIALS, PRACTICE = 2, 1
PHONE = {"width": 390, "height": 844}
LINK = "/run/demo?pid=5f3a9c0d1e2b"


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a study of `reliance` that shows most: heatmaps and examples."""
    with serve_task(tmp_path_factory.mktemp("twice"), "reliance", trials=TRIALS, practice=PRACTICE) as running:
        yield running


def test_the_first_response_comes_before_the_ais_label(chromium: Browser, twice: Server) -> None:
    """By key, mouse and touch; the page is closed between the two responses to the second trial.

    Catches an AI's label or an image of the explanation in anything that the network carried before the first
    response was sent; a second step without the first response, or one that can change it after a return; a practice
    trial that tells the truth between the steps; and a second step that scrolls on a phone.
    """
    manifest = Bundle(twice.home / "bundle").manifest
    trials = {one.assets.target: one for one in (*manifest.trials, *manifest.practice)}
    context = chromium.new_context(viewport=PHONE, has_touch=True)  # type: ignore[arg-type]
    carried = keep_traffic(context)

    def open_page(address: str) -> Page:
        page = context.new_page()
        page.goto(address)
        return page

    def assert_sealed(page: Page, number: int) -> None:
        """Before the first response to the trial of this number: nothing of it and of those to come."""
        wait_for_trial(page, number)
        shown = page.locator("#target").get_attribute("src") or ""
        done.append(shown.rpartition("/")[2])
        text = "\n".join(carried)
        for target, trial in trials.items():
            if target not in done[:-1]:
                assert not [name for name in trial.assets.every if name != target and name in text]
        assert text.count("The AI says") == text.count('"step":2')
        expect(page.locator("#label")).to_be_hidden()
        expect(page.locator("#question")).to_have_text("What does the picture show?")

    done: list[str] = []
    page = open_page(twice.url + LINK)
    agree(page)
    page.click("#understood")
    expect(page.locator("#mini [data-part=map] img")).to_have_count(0)
    page.click("#seen")
    page.click("#begin")
    assert_sealed(page, 1)
    assert "The AI says" not in "\n".join(carried)
    page.keyboard.press("f")
    expect(page.locator("#ready .prose")).to_contain_text("heatmap on top")
    page.click("#begin")
    wait_for_trial(page, 1)
    expect(page.locator("#label")).to_contain_text(f"The AI says: “{manifest.practice[0].target}”.")
    expect(page.locator("#label")).to_contain_text("Your first answer: “")
    expect(page.locator(".option:not(.both) img")).to_have_count(4)
    expect(page.locator("#feedback")).to_be_hidden()
    page.keyboard.press("j")
    expect(page.locator("#feedback p")).to_have_text(
        f"The true name of this picture is “{manifest.practice[0].truth}”."
    )
    page.click("#next")
    page.click("#begin")

    assert_sealed(page, 1)
    page.locator("#left").click()
    expect(page.locator("#question")).to_have_text("What is your final answer?")
    wait_for_trial(page, 1)
    page.locator("#left").tap()

    assert_sealed(page, 2)
    chosen = page.locator("#right span").inner_text()
    page.locator("#right").tap()
    expect(page.locator("#label")).to_contain_text(f"Your first answer: “{chosen}”.")
    wait_for_trial(page, 2)
    address = page.url
    page.close()
    page = open_page(address)
    page.click("#again")  # the tab that was closed had the session
    page.click("#begin")
    wait_for_trial(page, 2)
    expect(page.locator("#label")).to_contain_text(f"Your first answer: “{chosen}”.")
    expect(page.locator("#question")).to_have_text("What is your final answer?")
    assert page.evaluate("() => document.documentElement.scrollHeight <= innerHeight")
    assert page.evaluate("() => label.scrollWidth <= label.clientWidth")
    page.locator("#left").click()
    page.wait_for_selector("#end:not([hidden])")
    sql = "SELECT trial_index, side, input, n_exposures, resumed FROM {} WHERE session_id = ? ORDER BY trial_index"
    me = newest(twice)
    first = [(0, "left", "key", 1, 0), (1, "left", "mouse", 1, 0), (2, "right", "touch", 1, 0)]
    assert query(twice, sql.format("earlier_response"), me) == first
    final = [(0, "right", "key", 1, 0), (1, "left", "touch", 1, 0), (2, "left", "mouse", 2, 1)]
    assert query(twice, sql.format("response"), me) == final
    context.close()
