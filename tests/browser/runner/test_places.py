"""The tasks `localise` and `highlight` in a real browser: a mark by mouse, a brush by keys, and what is sealed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect

from study.bundle import Bundle
from study.places.grid import RADIUS, SIDE, decode_cells
from tests.browser.participation import keep_traffic, newest, query, wait_for_trial
from tests.browser.runner.conftest import begin_trials, serve_task
from tests.server import Server

pytestmark = pytest.mark.browser

TRIALS = 2
EARLIEST_MS = 500
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 720}
IS_KEPT = """() => new Promise((resolve) => {
  const opening = indexedDB.open("foretell", 1);
  opening.onsuccess = () => {
    const reading = opening.result.transaction("kept").objectStore("kept").getAllKeys();
    reading.onsuccess = () => resolve(reading.result.some((key) => key.endsWith("place")));
  };
})"""
READ_PAD = """() => [document.querySelector("#place canvas").toDataURL(),
  document.querySelector(".place-mark").style.left, document.querySelector(".place-mark").style.top]"""
SQL = "SELECT place, choice, input FROM response WHERE session_id = ? ORDER BY trial_index"


@pytest.fixture(scope="module")
def localising(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a study of `localise` that shows the examples with their heatmaps."""
    home = tmp_path_factory.mktemp("localise")
    with serve_task(home, "localise", trials=TRIALS, practice=1, conditions=("mapped_examples",)) as running:
        yield running


@pytest.fixture(scope="module")
def highlighting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a study of `highlight` that shows the image alone."""
    home = tmp_path_factory.mktemp("highlight")
    with serve_task(home, "highlight", trials=TRIALS, practice=0, conditions=("none",)) as running:
        yield running


def assert_fits(page: Page) -> None:
    assert page.evaluate("() => document.documentElement.scrollHeight <= innerHeight")
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("#place").bounding_box() == page.locator("#target").bounding_box()
    violations = Axe().run(page).response["violations"]
    assert [one["id"] for one in violations if one["impact"] in ("serious", "critical")] == []


def click_at(page: Page, x: float, y: float) -> None:
    box = page.locator("#place").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])


def test_a_point_is_stored_where_it_was_clicked(chromium: Browser, localising: Server) -> None:
    """By mouse on a desktop and by touch on a phone, offline in between.

    Catches a point measured from another element than the image, one that is stored before it is confirmed or without
    being there, a first mark that stays, a heatmap of the image among what the network carried before the response,
    and a mark that is lost without a connection.
    """
    context: BrowserContext = chromium.new_context(viewport=DESKTOP, has_touch=True)  # type: ignore[arg-type]
    carried = keep_traffic(context)
    page = context.new_page()
    begin_trials(page, localising)
    assert_fits(page)
    page.click("#answers button")
    expect(page.locator("#slow")).to_have_text("Please mark a place in the picture first.")
    click_at(page, 0.9, 0.1)
    click_at(page, 0.25, 0.75)
    manifest = Bundle(localising.home / "bundle").manifest
    sealed = [trial.assets.target_map for trial in (*manifest.practice, *manifest.trials)]
    assert not [name for name in sealed if name in "\n".join(carried)]
    assert query(localising, SQL, newest(localising)) == []
    page.click("#answers button")
    expect(page.locator("#map")).to_have_attribute("src", f"/assets/demo/{sealed[0]}")
    page.click("#next")
    page.click("#begin")
    wait_for_trial(page, 1)
    expect(page.locator("#map")).to_be_hidden()
    context.set_offline(True)
    click_at(page, 0.5, 0.5)
    page.click("#answers button")
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    wait_for_trial(page, 2)
    assert_fits(page)
    context.set_offline(False)
    box = page.locator("#place").bounding_box()
    assert box is not None
    page.touchscreen.tap(box["x"] + box["width"] * 0.75, box["y"] + box["height"] * 0.25)
    page.locator("#answers button").tap()
    page.wait_for_selector("#end:not([hidden])")
    assert not [name for name in sealed[1:] if name in "\n".join(carried)]
    context.close()
    stored = query(localising, SQL, newest(localising))
    assert [row[2] for row in stored] == ["mouse", "mouse", "touch"]
    points = [tuple(map(float, row[0].split(","))) for row in stored]
    assert points == [pytest.approx(point, abs=0.004) for point in ((0.25, 0.75), (0.5, 0.5), (0.75, 0.25))]


@pytest.mark.parametrize("task", ["highlight", "localise"])
def test_a_mark_that_is_not_confirmed_survives_a_reload(chromium: Browser, tmp_path: Path, task: str) -> None:
    """The stored mark is the one before the reload; the next trial begins without one.

    Catches a mark that has to be made again, and one that comes back in the next trial.
    """
    with serve_task(tmp_path, task, trials=TRIALS, practice=0, conditions=("none",)) as server:
        context = chromium.new_context(viewport=DESKTOP)  # type: ignore[arg-type]
        page = context.new_page()
        begin_trials(page, server)
        click_at(page, 0.2, 0.7)
        marked = page.evaluate(READ_PAD)
        page.wait_for_function(IS_KEPT)
        page.reload()
        page.click("#begin")
        wait_for_trial(page, 1)
        expect(page.locator("#trial")).to_have_attribute("data-marked", "")
        assert page.evaluate(READ_PAD) == marked
        page.wait_for_timeout(EARLIEST_MS)  # until then a press does not count
        page.click("#answers button")
        wait_for_trial(page, 2)
        expect(page.locator("#trial")).not_to_have_attribute("data-marked", "")
        context.close()
        ((text, *_), *_) = query(server, SQL, newest(server))
    if task == "localise":
        assert tuple(map(float, text.split(","))) == pytest.approx((0.2, 0.7), abs=0.004)
    else:
        rows, columns = np.nonzero(decode_cells(text))
        assert (columns.mean() + 0.5, rows.mean() + 0.5) == pytest.approx((0.2 * SIDE, 0.7 * SIDE), abs=0.5)
        assert 4 < len(rows) < 4 * (RADIUS + 1) ** 2


def test_a_brush_is_painted_by_keys_alone(chromium: Browser, highlighting: Server) -> None:
    """Arrow keys, space bar, undo and clear by Tab, Enter.

    Catches a brush that needs a pointer, one that paints where it only moved, keys of a response that confirm by
    accident, an undo that takes more than the last stroke, and cells written in another order than they are read.
    """
    context = chromium.new_context(viewport=DESKTOP)  # type: ignore[arg-type]
    page = context.new_page()
    begin_trials(page, highlighting)
    assert_fits(page)
    for key in ("Enter", "f", "2"):
        page.keyboard.press(key)
    expect(page.locator("#slow")).to_have_text("Please brush over a part of the picture first.")
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".place-status")).to_contain_text("Brush at 38% from the left and 47% from the top")
    page.keyboard.press("Space")
    page.get_by_role("button", name="Undo").focus()
    page.keyboard.press("Enter")
    page.locator("#place").focus()
    page.keyboard.press("Enter")
    wait_for_trial(page, 2)
    page.keyboard.press("Space")
    page.get_by_role("button", name="Clear").focus()
    page.keyboard.press("Space")
    page.locator("#place").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    page.wait_for_selector("#end:not([hidden])")
    context.close()
    stored = query(highlighting, SQL, newest(highlighting))
    rows, columns = np.mgrid[:SIDE, :SIDE] + 0.5
    for (text, _, kind), (x, y) in zip(stored, [(12, 16), (17, 16)], strict=True):
        assert kind == "key"
        assert (decode_cells(text) == (np.hypot(columns - x, rows - y) <= RADIUS)).all()
