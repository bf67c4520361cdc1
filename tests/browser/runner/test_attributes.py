"""`discover` in a real browser: a grid, boxes by mouse, keyboard and touch, a draft after a reload, what is sealed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from study.attributes.sets import name_set, write_set
from study.attributes.simulated import draw_set
from study.bundle import Bundle
from study.plan.simulated_participants import sample_mixture
from study.service import Service
from study.tasks import TASKS
from study.tasks.theory import ShownExplanations
from tests.browser.participation import agree, keep_traffic, newest, query, wait_for_trial
from tests.browser.runner.test_scale import PHONE, assert_fits
from tests.browser.test_accessibility import grave
from tests.server import Server, serving
from tests.study.attribute_studies import build_attributes

pytestmark = pytest.mark.browser
LAPTOP = {"width": 1280, "height": 720}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Bundle]]:
    """A server with a study about attributes, and its bundle."""
    home = tmp_path_factory.mktemp("attributes")
    bundle = build_attributes(home)
    with Service(home) as service:
        service.researcher.open_study(bundle.folder, per_condition=2)
    with serving(home) as server:
        yield server, bundle


def to_first_trial(page: Page, address: str) -> None:
    page.goto(address)
    agree(page)
    for button in ("#understood", "#seen", "#begin"):
        page.click(button)
    wait_for_trial(page, 1)


def offer(page: Page) -> dict[str, str]:
    """The letter of each attribute by its name, in the order on the page."""
    boxes = page.locator("#attributes label").all()
    return {box.inner_text().strip(): box.locator("input").get_attribute("value") or "" for box in boxes}


@pytest.mark.parametrize("condition", ["saliency", "none"])
def test_attributes_are_chosen_by_mouse_keys_and_touch(
    chromium: Browser, running: tuple[Server, Bundle], condition: str
) -> None:
    """On laptop and phone, with a reload in the middle.

    Catches a grid that is cut off or smaller without heatmaps, a box that does nothing, none that stays ticked with
    another, a confirmation without a choice, a draft that a reload loses, an input stored as another one, a file that
    one condition loads and the other does not, and the truth, the confidence or the file's order in the traffic.
    """
    server, bundle = running
    context = chromium.new_context(viewport=LAPTOP, has_touch=True)  # type: ignore[arg-type]
    carried = keep_traffic(context)
    page = context.new_page()
    server.let_in(context)
    to_first_trial(page, f"{server.url}/run/attributes?preview={condition}")
    assert_fits(page)
    assert grave(page) == []
    practice, names = bundle.manifest.practice[0], offer(page)
    assert {*names} == {"a frame", "its height", "the background", "the shape", "which way it faces", "None of these"}
    grid = page.locator("#target")
    assert (grid.get_attribute("src") or "").endswith(practice.assets.target)
    box = grid.bounding_box()
    assert box is not None
    assert box["width"] > 350
    expect(page.locator(".target .ends")).to_have_text("← AI: certainly birdAI: certainly fish →")
    expect(page.locator("#map")).to_be_visible(visible=condition == "saliency")
    page.wait_for_timeout(300)
    page.click("#answers button")
    expect(page.locator("#slow")).to_have_text("Please choose at least one, or “None of these”.")
    page.get_by_label("None of these").check()
    page.get_by_label("the shape").check()
    expect(page.get_by_label("None of these")).not_to_be_checked()
    page.get_by_label("None of these").check()
    expect(page.get_by_label("the shape")).not_to_be_checked()
    page.get_by_label("the shape").check()
    page.get_by_label("the background").check()
    page.wait_for_timeout(300)
    page.reload()
    page.click("#begin")
    wait_for_trial(page, 1)
    expect(page.get_by_label("the shape")).to_be_checked()
    expect(page.get_by_label("the background")).to_be_checked()
    assert offer(page) == names
    page.wait_for_timeout(300)
    page.click("#answers button")
    page.click("#begin")  # no feedback after practice
    wait_for_trial(page, 1)
    assert offer(page) == names
    page.wait_for_timeout(300)
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    wait_for_trial(page, 2)
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.wait_for_timeout(300)
    assert grave(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_label("a frame").tap()
    page.tap("#answers button")
    page.wait_for_selector("#end:not([hidden])")
    rows = query(
        server,
        "SELECT place, input, choice, resumed FROM response WHERE session_id = ? ORDER BY trial_index",
        newest(server),
    )
    first_two = "".join(sorted([*names.values()][:2]))
    assert rows == [
        ("cd", "mouse", "a", 1),
        (first_two, "key", "a" if first_two == "cd" else "b", 0),
        ("a", "touch", "b", 0),
    ]
    context.close()
    traffic = "\n".join(carried)
    for trial in (*bundle.manifest.trials, *bundle.manifest.practice):
        assert all(name in traffic for name in trial.assets.every)
        assert trial.attributes is not None
        assert not any(str(one) in traffic for one in trial.attributes.confidences)
        assert not any(name in traffic for name in trial.attributes.images)
    assert '"used"' not in traffic


def test_simulated_sets_arrive_as_they_were_drawn(chromium: Browser, running: tuple[Server, Bundle]) -> None:
    """A simulated reader of heatmaps, whose sets are ticked by name on the page.

    Catches a box that has another attribute's letter, and a set that is not stored as it was chosen.
    """
    server, bundle = running
    rng = np.random.default_rng(8)
    (person,) = sample_mixture({"map_reader": 1.0}, 1, rng)
    seen = ShownExplanations(saliency=True)
    context = chromium.new_context(viewport=LAPTOP)  # type: ignore[arg-type]
    page = context.new_page()
    server.let_in(context)
    to_first_trial(page, f"{server.url}/run/attributes?preview=saliency")
    expected = []
    images = {trial.assets.target: trial for trial in (*bundle.manifest.practice, *bundle.manifest.trials)}
    for number in (0, 1, 2):
        if number:
            wait_for_trial(page, number)
        trial = images[(page.locator("#target").get_attribute("src") or "").rpartition("/")[2]]
        assert trial.attributes is not None
        drawn = write_set(draw_set(trial, lambda one: person.p_right(TASKS["discover"], one, seen), rng))
        expected.append(drawn)
        page.wait_for_timeout(300)
        for name in name_set(trial.attributes, drawn) or ("None of these",):
            page.get_by_label(name, exact=True).check()
        page.click("#answers button")
        if not number:
            page.click("#begin")
    page.wait_for_selector("#end:not([hidden])")
    stored = query(server, "SELECT place FROM response WHERE session_id = ? ORDER BY trial_index", newest(server))
    assert [row[0] for row in stored] == expected
    context.close()
