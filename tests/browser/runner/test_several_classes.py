"""`predict` with four classes in a real browser: by key, mouse and touch, and what the network carries before."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from study.bundle import Bundle
from study.conditions import CONDITIONS
from tests.browser.participation import agree, keep_traffic, newest, query, wait_for_trial
from tests.browser.runner.conftest import DESKTOP, serve_task
from tests.browser.runner.test_scale import PHONE, TABLET, assert_fits
from tests.server import Server

pytestmark = pytest.mark.browser

FOUR = {"trials": {"options": 4}, "pacing": {"confidence": True}}


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a study of four classes, with heatmaps and a question about confidence."""
    home = tmp_path_factory.mktemp("several")
    with serve_task(home, "predict", trials=3, practice=1, conditions=("saliency",), settings=FOUR) as running:
        yield running


def _press(page: Page, number: int, key: str, name: str) -> str:
    """Wait for a trial, respond by this key, and give the confidence; return the class that was on that button."""
    wait_for_trial(page, number)
    pressed = page.locator("#answers button").nth(int(name) - 1).locator("span").inner_text()
    page.keyboard.press(key)
    page.locator("#sure button").nth(4).click()
    return pressed


def test_each_class_is_stored_once_as_it_was_pressed(chromium: Browser, several: Server) -> None:
    """By key, mouse and touch, with a fifth key and a press that is too early, then confidence.

    Catches a class that is another one in the database, a fifth key that responds, the digit of a confidence taken for
    a class, the AI's class or its examples in what the network carried before a response, an image that is small for
    examples that no condition has, buttons of different sizes, and four that a phone or axe cannot have.
    """
    manifest = Bundle(several.home / "bundle").manifest
    context = chromium.new_context(viewport=DESKTOP, has_touch=True)  # type: ignore[arg-type]
    carried = keep_traffic(context)
    page = context.new_page()
    page.goto(f"{several.url}/run/demo?pid=5f3a9c0d1e2b")
    agree(page)
    expect(page.locator("#instructions .prose")).to_contain_text("even if you would have chosen another one")
    page.click("#understood")
    expect(page.locator("#mini .mini-option")).to_have_count(4)
    page.click("#seen")
    page.click("#begin")
    wait_for_trial(page, 1)
    assert_fits(page)
    box = page.locator("#target").bounding_box()
    assert box is not None
    assert box["height"] > 0.45 * DESKTOP["height"]  # no empty place for examples
    page.keyboard.press("5")
    expect(page.locator("#slow")).to_contain_text("Press a number from 1 (on the left) to 4 (on the right)")
    assert "The AI called" not in "\n".join(carried)
    _press(page, 1, "4", "4")
    expect(page.locator("#feedback p")).to_have_text(f"The AI called this picture “{manifest.practice[0].target}”.")
    page.click("#next")
    page.click("#begin")
    page.wait_for_selector('#trial[data-phase="fixation"]')
    page.keyboard.press("2")  # too early
    pressed = [_press(page, 1, "Numpad3", "3")]
    wait_for_trial(page, 2)
    button = page.locator("#answers button").nth(0)
    sizes = {
        (box["width"], box["height"]) for one in page.locator("#answers button").all() if (box := one.bounding_box())
    }
    assert len({tuple(map(round, size)) for size in sizes}) == 1
    pressed.append(button.locator("span").inner_text())
    button.click()
    page.locator("#sure button").nth(0).click()
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    wait_for_trial(page, 3)
    assert_fits(page)
    pressed.append(page.locator("#answers button").nth(3).locator("span").inner_text())
    page.locator("#answers button").nth(3).tap()
    page.locator("#sure button").nth(2).tap()
    page.wait_for_selector("#end:not([hidden])")
    context.close()
    examples = {e.image for trial in (*manifest.trials, *manifest.practice) for e in trial.assets.examples}
    assert not [name for name in examples if name in "\n".join(carried)]
    sql = (
        "SELECT side, input, choice, item_id, confidence FROM response JOIN trial_plan USING (session_id, trial_index) "
        "WHERE session_id = ? AND phase = 'main' ORDER BY trial_index"
    )
    rows = query(several, sql, newest(several))
    assert [row[:2] for row in rows] == [("3", "key"), ("1", "mouse"), ("4", "touch")]
    trials = {trial.id: trial for trial in manifest.trials}
    assert [trials[item].options["abcd".index(choice)] for _, _, choice, item, _ in rows] == pressed
    assert [row[4] for row in rows] == [1, 0, 0.5]
    early = query(several, "SELECT payload_json FROM page_event WHERE kind = 'anticipation'")
    assert [json.loads(row[0])["side"] for row in early] == ["2"]


@pytest.mark.parametrize("condition", ["none", "class_maps"])
def test_each_class_has_its_heatmap_on_its_button(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory, condition: str
) -> None:
    """Five classes on desktop, tablet and phone: which image is on which button, and a press on the image itself.

    Catches a heatmap on another class's button, one that is cut off or outside its button, an image that responds to
    nothing, other files or scripts in one condition than in the other, and an image that is larger in one.
    """
    other = "class_maps" if condition == "none" else "none"
    settings = {"trials": {"options": 5}}
    home = tmp_path_factory.mktemp("class_maps")
    with serve_task(home, "predict", trials=2, practice=0, conditions=(condition, other), settings=settings) as server:
        manifest = Bundle(server.home / "bundle").manifest
        context = chromium.new_context(viewport=DESKTOP)  # type: ignore[arg-type]
        page = context.new_page()
        asked: set[str] = set()
        page.on("request", lambda request: asked.add(request.url.removeprefix(server.url)))
        server.let_in(context)
        page.goto(f"{server.url}/run/demo?preview={condition}")
        agree(page)
        for button in ("#understood", "#seen", "#begin"):
            page.click(button)
        wait_for_trial(page, 1)
        assert {"/runner/options.js", "/runner/options.css"} <= asked
        images = {name for trial in manifest.trials for name in trial.assets.list_without_examples()}
        assert {url.rsplit("/", 1)[1] for url in asked if url.startswith("/assets/")} == images
        trial = next(one for one in manifest.trials if page.locator(f'#target[src$="{one.assets.target}"]').count())
        shown = CONDITIONS[condition].shown(trial).examples
        buttons = page.locator("#answers button").all()
        for size in (DESKTOP, TABLET, PHONE):
            page.set_viewport_size(size)  # type: ignore[arg-type]
            assert_fits(page)
            target = page.locator("#target").bounding_box()
            assert target is not None
            assert target["height"] > 0.22 * size["height"]
            for button in buttons:
                image = button.locator("img")
                drawn = shown[button.locator("span").inner_text()]
                assert [(image.get_attribute("src") or "").rsplit("/", 1)[-1]] == (list(drawn) or [""])
                outer, inner = button.bounding_box(), image.bounding_box()
                assert (inner is not None) == bool(drawn)
                if inner is not None and outer is not None:
                    assert min(inner["width"], inner["height"]) > 60
                    assert outer["x"] <= inner["x"] <= inner["x"] + inner["width"] <= outer["x"] + outer["width"]
        pressed = buttons[3].locator("span").inner_text()
        (buttons[3].locator("img") if shown[pressed] else buttons[3]).click()
        wait_for_trial(page, 2)
        ((side, choice, item),) = query(
            server, "SELECT side, choice, item_id FROM response JOIN trial_plan USING (session_id, trial_index)"
        )
        assert (side, item, trial.options["abcde".index(choice)]) == ("4", trial.id, pressed)
        context.close()
