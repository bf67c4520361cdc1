"""A participation within conditions in a real browser: the pages between periods, and what the network carries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from study.bundle import Bundle
from study.conditions import CONDITIONS
from study.plan.orders import read_order
from tests.browser.participation import keep_traffic, newest, query, wait_for_trial
from tests.browser.runner.conftest import DESKTOP, begin_trials, serve_task
from tests.server import Server

pytestmark = pytest.mark.browser

TWO = ("none", "both")
WITHIN = {"allocation": {"within": True}, "language": "de"}


@pytest.fixture(scope="module")
def within(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a study in German of two conditions, both of which each participant sees in three trials."""
    home = tmp_path_factory.mktemp("within")
    with serve_task(home, "predict", trials=6, practice=1, conditions=TWO, settings=WITHIN) as running:
        yield running


def test_each_period_is_announced_and_shows_its_condition(chromium: Browser, within: Server) -> None:
    """By key, with a reload on the page before the second period.

    Catches a period that begins without its page, a page that says what the other condition shows, an explanation in
    the wrong period, trials that are laid out otherwise in one condition, a condition's name in anything that the
    network carried, and images that are loaded in one period only.
    """
    trials = {one.assets.target: one for one in Bundle(within.home / "bundle").manifest.trials}
    context = chromium.new_context(viewport=DESKTOP)  # type: ignore[arg-type]
    carried = keep_traffic(context)
    page = context.new_page()
    begin_trials(page, within)
    page.keyboard.press("f")
    page.click("#next")
    page.click("#begin")
    ((place,),) = query(within, "SELECT condition FROM session WHERE session_id = ?", newest(within))
    order = read_order(place)
    assert sorted(order) == sorted(TWO)
    sizes = []
    for number in range(1, 7):
        if number == 4:
            heading = page.locator("#ready h1")
            expect(heading).to_have_text("Teil 2 von 2")
            page.reload()
            expect(heading).to_have_text("Teil 2 von 2")
            said = page.locator("#ready .prose")
            expect(said).to_contain_text("Ihre Aufgabe bleibt dieselbe.")
            explains = "ohne weitere Informationen" if order[1] == "none" else "Heatmap"
            expect(said).to_contain_text(explains)
            page.click("#begin")
        wait_for_trial(page, number)
        condition = CONDITIONS[order[(number - 1) // 3]]
        expect(page.locator("#map")).to_be_visible(visible=condition.shows_saliency)
        expect(page.locator(".option:not(.both) img")).to_have_count(4 if condition.shows_examples else 0)
        sizes.append(page.locator("#target").bounding_box())
        trials.pop((page.locator("#target").get_attribute("src") or "").rpartition("/")[2])
        page.keyboard.press("f")
    page.wait_for_selector("#end:not([hidden])")
    assert trials == {}  # each image once
    assert len({(box["width"], box["height"]) for box in sizes if box}) == 1
    text = "\n".join(carried)
    assert not [name for name in ('"condition"', '"period"', '"none"', '"both"', place) if name in text]
    for trial in Bundle(within.home / "bundle").manifest.trials:
        assert all(name in text for name in trial.assets.every)
    context.close()
