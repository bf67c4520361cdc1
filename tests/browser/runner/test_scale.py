"""The task `agreement` in a real browser: four levels by key, mouse and touch, and what the network carries before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from study.bundle import Bundle
from tests.browser.participation import agree, keep_traffic, newest, query, wait_for_trial
from tests.browser.runner.conftest import serve_task
from tests.server import Server

pytestmark = pytest.mark.browser

TRIALS, PRACTICE = 3, 1
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 720}
TABLET = {"width": 760, "height": 640}
# The words of the buttons that are on two lines.
BROKEN = """() => [...document.querySelectorAll("#answers span")].flatMap((span) => {
  const text = span.firstChild, place = document.createRange();
  return [...text.data.matchAll(/\\S+/g)].filter(({ index, 0: word }) => {
    place.setStart(text, index);
    place.setEnd(text, index + word.length);
    return place.getClientRects().length > 1;
  }).map(([word]) => word);
})"""
CUT = """() => [...document.querySelectorAll("figcaption")]
  .filter((one) => one.scrollHeight > one.clientHeight + 1).map((one) => one.textContent)"""
LEVELS = ["fairly_wrong", "somewhat_wrong", "somewhat_right", "fairly_right"]


@pytest.fixture(scope="module")
def rating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a study of `agreement` that shows most: heatmaps and examples."""
    with serve_task(tmp_path_factory.mktemp("scale"), "agreement", trials=TRIALS, practice=PRACTICE) as running:
        yield running


def assert_fits(page: Page) -> None:
    """No scrolling, nothing cut off, words in one piece, buttons of 44 px and more, and nothing grave for axe."""
    assert page.evaluate(BROKEN) == []
    assert page.evaluate(CUT) == []
    assert page.evaluate("() => document.documentElement.scrollHeight <= innerHeight")
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    for button in page.locator("#answers button").all():
        box = button.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) >= 44
        assert button.evaluate("(one) => one.scrollWidth <= one.clientWidth && one.scrollHeight <= one.clientHeight")
    violations = Axe().run(page).response["violations"]
    assert [one["id"] for one in violations if one["impact"] in ("serious", "critical")] == []


def test_each_level_is_stored_once_as_it_was_pressed(chromium: Browser, rating: Server) -> None:
    """By key, mouse and touch, with keys that are none of the four and a press that is too early.

    Catches a level that is another one in the database, a fifth key that responds, an early press that counts, the
    truth in what the network carried before a response, and four buttons that a phone or axe cannot have.
    """
    manifest = Bundle(rating.home / "bundle").manifest
    context = chromium.new_context(viewport=DESKTOP, has_touch=True)  # type: ignore[arg-type]
    carried = keep_traffic(context)
    page = context.new_page()
    page.goto(f"{rating.url}/run/demo?pid=5f3a9c0d1e2b")
    agree(page)
    page.click("#understood")
    expect(page.locator("#mini .mini-option")).to_have_count(4)
    expect(page.locator("#keys")).to_contain_text("Tap your answer")
    page.click("#seen")
    page.click("#begin")
    wait_for_trial(page, 1)
    assert_fits(page)
    for key in ("5", "0", "f"):
        page.keyboard.press(key)
    expect(page.locator("#slow")).to_contain_text("Press a number from 1 (on the left) to 4")
    assert "The true name" not in "\n".join(carried)
    page.keyboard.press("1")
    expect(page.locator("#feedback p")).to_have_text(
        f"The true name of this picture is “{manifest.practice[0].truth}”."
    )
    page.click("#next")
    page.click("#begin")
    page.wait_for_selector('#trial[data-phase="fixation"]')
    page.keyboard.press("2")  # too early
    wait_for_trial(page, 1)
    expect(page.get_by_role("group", name="Is the AI right?")).to_be_visible()
    page.set_viewport_size(TABLET)  # type: ignore[arg-type]
    assert_fits(page)
    page.set_viewport_size(DESKTOP)  # type: ignore[arg-type]
    names = page.locator("#answers button").all_inner_texts()
    page.keyboard.press("Numpad4")
    wait_for_trial(page, 2)
    page.get_by_role("button", name="Somewhat confident that it is wrong").click()
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    wait_for_trial(page, 3)
    assert_fits(page)
    page.get_by_role("button", name="Somewhat confident that it is right").tap()
    page.wait_for_selector("#end:not([hidden])")
    sealed = {
        name
        for trial in (*manifest.trials, *manifest.practice)
        for name in set(trial.assets.every) - set(trial.assets.list_of_option(trial.target))
    }
    assert not [name for name in sealed if name in "\n".join(carried)]
    context.close()
    order = LEVELS if "wrong" in names[0] else LEVELS[::-1]
    mild = [str(order.index(level) + 1) for level in ("somewhat_wrong", "somewhat_right")]
    letters = dict(zip(order, "abcd" if order == LEVELS else "dcba", strict=True))
    sql = "SELECT side, choice, input FROM response WHERE session_id = ? ORDER BY trial_index"
    assert query(rating, sql, newest(rating)) == [
        ("1", letters[order[0]], "key"),
        ("4", letters[order[3]], "key"),
        (mild[0], "b", "mouse"),
        (mild[1], "c", "touch"),
    ]
    early = query(rating, "SELECT json_extract(payload_json, '$.side') FROM page_event WHERE kind = 'anticipation'")
    assert early == [("2",)]
    assert query(rating, "SELECT count(*) FROM page_event WHERE kind = 'other_key'") == [(1,)]
