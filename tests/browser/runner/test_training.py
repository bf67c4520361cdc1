"""A training and a test block in a real browser: what is shown, what the network carries before, and the fold."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from study.bundle import Bundle
from tests.browser.participation import keep_traffic, newest, query, tab_to, wait_for_trial, wait_until_kept
from tests.browser.runner.conftest import DESKTOP, begin_trials, serve_task
from tests.browser.runner.test_scale import PHONE, assert_fits
from tests.server import Server

pytestmark = pytest.mark.browser

SAID = r"The AI called this picture “(\w+)”"
BLOCKS = {"blocks": {"training": 2, "test": 3}}


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a study of one round that shows most in training: heatmaps and examples."""
    home = tmp_path_factory.mktemp("training")
    with serve_task(home, "predict", trials=6, practice=1, settings=BLOCKS) as running:
        yield running


def name_image(page: Page, place: str) -> str:
    """Name the image at a place of the page, by its SHA-256."""
    return (page.locator(place).get_attribute("src") or "").rpartition("/")[2]


def test_training_explains_and_opens_and_test_does_neither(chromium: Browser, training: Server) -> None:
    """By key, mouse and touch, with a reload in each block.

    Catches an explanation in test or none in training, feedback in the wrong block, the AI's prediction or an image of
    the explanation of a test trial, or the condition, in anything that the network carried, a fold that lacks a
    training image, shows another prediction, moves the page, cannot be opened by keyboard or touch, takes its keys for
    responses or cannot be read on a phone, and a reload that begins the block again.
    """
    manifest = Bundle(training.home / "bundle").manifest
    trials = {one.assets.target: one for one in (*manifest.trials, *manifest.practice)}
    context = chromium.new_context(viewport=DESKTOP, has_touch=True)  # type: ignore[arg-type]
    carried = keep_traffic(context)
    page = context.new_page()
    begin_trials(page, training)
    page.keyboard.press("f")
    page.click("#next")
    expect(page.locator("#ready h1")).to_have_text("Training 1 of 1")
    expect(page.locator("#ready .prose")).to_contain_text("In the next 2 questions")
    page.click("#begin")

    trained = []
    for number in (1, 2):
        wait_for_trial(page, number)
        expect(page.locator("#map")).to_be_visible()
        expect(page.locator(".option:not(.both) img")).to_have_count(4)
        expect(page.locator("#reservoir")).to_be_hidden()
        trained.append(trials[name_image(page, "#target")])
        page.keyboard.press("f")
        expect(page.locator("#feedback p")).to_have_text(f"The AI called this picture “{trained[-1].target}”.")
        if number == 1:
            wait_until_kept(page, carried, SAID, 2)  # of a reply that the reload cuts off, nothing could be read
            page.reload()
            expect(page.locator("#ready .prose")).to_contain_text("You continue with picture 2 of 5.")
            page.click("#begin")
        else:
            page.click("#next")

    expect(page.locator("#ready h1")).to_have_text("Test 1 of 1")
    expect(page.locator("#ready .prose")).to_contain_text("You can look again at the training pictures")
    page.click("#begin")
    tested = []

    def assert_plain(number: int) -> None:
        wait_for_trial(page, number)
        expect(page.locator("#map")).to_be_hidden()
        expect(page.locator(".option img")).to_have_count(0)
        assert not page.evaluate("() => 'explained' in document.getElementById('trial').dataset")
        expect(page.locator("#reservoir summary")).to_have_text("Training pictures (2)")
        expect(page.locator("#reservoir > div")).to_be_hidden()
        tested.append(trials[name_image(page, "#target")])
        text = "\n".join(carried)
        for trial in trials.values():
            if trial not in trained and not trial.id.startswith("practice"):
                assert not [name for name in {*trial.assets.every} - {trial.assets.target} if name in text]
        assert '"condition"' not in text

    def assert_reservoir() -> None:
        """The fold has both training trials as they were shown, with the AI's prediction."""
        expect(page.locator("#reservoir figure")).to_have_count(2)
        for figure, trial in zip(page.locator("#reservoir figure").all(), trained, strict=True):
            expect(figure.locator("figcaption")).to_have_text(f"The AI called this picture “{trial.target}”.")
            shown = [(one.get_attribute("src") or "").rpartition("/")[2] for one in figure.locator("img").all()]
            assert shown[:2] == [trial.assets.target, trial.assets.target_map]
            assert {*shown[2:]} == {example.map for example in trial.assets.examples}
            assert all(one.evaluate("(image) => image.naturalWidth") for one in figure.locator("img").all())
        assert_fits(page)

    assert_plain(3)
    place = page.locator("#target").bounding_box()
    tab_to(page, "#reservoir summary")
    page.keyboard.press("Space")
    assert_reservoir()
    assert page.locator("#target").bounding_box() == place
    expect(page.locator("#slow")).to_have_text("")
    page.keyboard.press("j")
    assert_plain(4)
    page.reload()
    page.click("#begin")
    tested.pop()
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    assert_plain(4)
    page.locator("#reservoir summary").tap()
    assert_reservoir()
    page.locator("#reservoir summary").tap()
    page.locator("#left").tap()
    assert_plain(5)
    page.locator("#right").click()
    page.wait_for_selector("#end:not([hidden])")
    said = re.findall(SAID, "\n".join(carried))
    opened = [manifest.practice[0].target, *(one.target for one in trained)]
    assert {*said} == {*opened}
    assert len(said) == 3 + 2 * 2  # practice and training, and the fold that was asked for twice
    sql = "SELECT item_id, input, n_exposures FROM response JOIN trial_plan USING (session_id, trial_index) "
    rows = query(training, sql + "WHERE session_id = ? ORDER BY trial_index", newest(training))
    ids = [manifest.practice[0].id, *(one.id for one in (*trained, *tested))]
    assert rows == list(zip(ids, ("key", "key", "key", "key", "touch", "mouse"), (1, 1, 1, 1, 2, 1), strict=True))
    events = query(training, "SELECT trial_index, payload_json FROM page_event WHERE kind = 'reservoir'")
    assert sorted(index for index, payload in events if "true" in payload) == [3, 4]
    assert query(training, "SELECT count(*) FROM page_event WHERE kind = 'other_key'") == [(0,)]
    context.close()
