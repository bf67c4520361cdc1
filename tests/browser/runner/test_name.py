"""`name` in a real browser: a text by keyboard and button, its draft after a reload, and its coding by two raters."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from study.bundle import Bundle
from study.service import Service
from tests.browser.participation import agree, keep_traffic, newest, query, wait_for_trial
from tests.browser.runner.conftest import DESKTOP
from tests.browser.runner.test_scale import PHONE, TABLET, assert_fits
from tests.browser.stillness import wait_until_still
from tests.browser.test_accessibility import grave
from tests.server import Server, serving
from tests.study.names import write_names
from tests.study.unit_studies import NAMES, build_units

pytestmark = pytest.mark.browser
TEXTS = "SELECT text, input FROM response WHERE session_id = ? ORDER BY trial_index"
HOSTILE = "<img src=x onerror=\"document.title='hacked'\"> عيون 👁️"
SHOTS = os.environ.get("FORETELL_SHOTS", "")


def shoot(page: Page, name: str) -> None:
    """Save a picture of the page where a folder is named for it."""
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{name}.png")


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Bundle]]:
    """A server with a study in which units are named; four participants have written their texts."""
    home = tmp_path_factory.mktemp("names")
    bundle = build_units(home, NAMES)
    with Service(home) as service:
        study = service.researcher.open_study(bundle.folder, per_condition=4)
        for number in range(2):
            write_names(service, study, [f"{HOSTILE} {number}-{trial}" for trial in range(4)])
    with serving(home) as running:
        yield running, bundle


def begin(context: BrowserContext, server: Server, condition: str) -> Page:
    page = context.new_page()
    server.let_in(context)
    page.goto(f"{server.url}/run/names?preview={condition}")
    agree(page)
    for button in ("#understood", "#seen", "#begin"):
        page.click(button)
    wait_for_trial(page, 1)
    return page


@pytest.mark.parametrize("condition", ["examples", "none"])
def test_a_text_is_written_kept_and_confirmed(chromium: Browser, names: tuple[Server, Bundle], condition: str) -> None:
    """By Enter, by the button, and after a reload in the middle of a text.

    Catches digits that press the button, an empty or too long text that is sent, a draft that is lost or that comes
    again on the next trial, a text that is changed on its way, the images of the other condition, and another set of
    files in one of the conditions.
    """
    server, bundle = names
    context = chromium.new_context(viewport=DESKTOP, has_touch=True)  # type: ignore[arg-type]
    context.set_default_timeout(30_000)
    carried = keep_traffic(context)
    page = begin(context, server, condition)
    field, button = page.locator("#name"), page.locator("#answers button")
    for size in (DESKTOP, TABLET, PHONE):
        page.set_viewport_size(size)  # type: ignore[arg-type]
        assert_fits(page)
        box = page.locator("#map").bounding_box()
        assert box is not None
        assert box["width"] > 120
        shoot(page, f"trial_{condition}_{size['width']}")
    expect(page.locator("#target")).to_be_visible() if condition == "examples" else expect(
        page.locator("#target")
    ).to_be_hidden()
    assert grave(page) == []
    page.set_viewport_size(DESKTOP)  # type: ignore[arg-type]
    page.wait_for_timeout(600)
    button.click()
    expect(page.locator("#slow")).to_have_text("Please write a few words first.")
    field.fill("x" * 201)
    expect(page.locator("#name-count")).to_have_text("201 / 200")
    field.press("Enter")
    expect(page.locator("#slow")).to_have_text("Please shorten it to 200 characters.")
    field.fill("")
    field.press_sequentially(" 1 or 2 dark corners ")
    page.wait_for_timeout(200)
    page.reload()
    page.click("#begin")
    wait_for_trial(page, 1)
    expect(field).to_have_value(" 1 or 2 dark corners ")
    page.wait_for_timeout(600)
    field.press("Enter")
    page.click("#begin")
    for trial in range(1, 4):
        wait_for_trial(page, trial)
        expect(field).to_have_value("")
        page.wait_for_timeout(600)
        field.fill(f"{HOSTILE} {trial}")
        button.click()
    expect(page.locator("#trial")).to_be_hidden()
    page.wait_for_timeout(600)
    given = query(server, TEXTS, newest(server))
    assert [text for text, _ in given] == ["1 or 2 dark corners", *[f"{HOSTILE} {trial}" for trial in range(1, 4)]]
    assert [how for _, how in given] == ["key", "mouse", "mouse", "mouse"]
    context.close()
    traffic = "\n".join(carried)
    for one in bundle.manifest.trials:
        assert one.unit is not None
        assert {one.assets.target, one.assets.target_map} <= {
            name for name in (one.assets.target, one.assets.target_map) if name in traffic
        }
        assert one.unit.name not in traffic
        assert not any(name in traffic for name in one.unit.most)


def rate(page: Page, rater: str, keys: str) -> None:
    """Code the texts by keys, each once the one before is stored."""
    page.get_by_label("Your name as a rater").fill(rater)
    page.get_by_role("button", name="Start coding").click()
    for number, key in enumerate(keys):
        expect(page.get_by_text(f"You have coded {number}.")).to_be_visible()
        wait_until_still(page)  # a key pressed while the page is drawn has no button yet
        page.keyboard.press(key)
    expect(page.get_by_text(f"You have coded {len(keys)}.")).to_be_visible()


def test_two_raters_code_by_keys_and_see_their_agreement(chromium: Browser, names: tuple[Server, Bundle]) -> None:
    """Catches a text that is read as HTML, a participant or condition on the page of a rater, a key that gives another
    code or that is typed into a field, an agreement that opens too early, and codes that can be changed after it."""
    server, _ = names
    count = query(server, "SELECT COUNT(*) FROM response JOIN session USING (session_id) WHERE mode = 'live'")[0][0]
    texts = count - 2  # one practice trial of each of two participants
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(30_000)
    server.let_in(context)
    page = context.new_page()
    page.goto(f"{server.url}/coding?study=names")
    rate(page, "Ada", "1" * (texts - 1))
    shoot(page, "coding")
    expect(page.locator(".coded-text")).to_contain_text("onerror")
    assert page.locator(".coded-text img").count() == 0
    seen = page.locator("body").inner_text()
    for participant, condition in query(server, "SELECT participant_id, condition FROM session WHERE mode = 'live'"):
        assert participant[:8] not in seen
        assert str(condition) not in seen
    assert grave(page) == []
    expect(page.get_by_role("button", name="Open the agreement")).to_have_count(0)
    page.get_by_role("button", name="Does not match").click()
    expect(page.get_by_text(f"You have coded {texts}.")).to_be_visible()
    page.get_by_role("button", name="Change").click()
    rate(page, "Bo", "1" * (texts - 1) + "2")
    page.get_by_role("button", name="Open the agreement").click()
    expect(page.get_by_text("Cohen's kappa is")).to_be_visible()
    expect(page.get_by_role("button", name="Does not match")).to_be_disabled()
    assert page.title() == "Foretell"
    given = query(server, "SELECT rater, code, COUNT(*) FROM response_code GROUP BY rater, code ORDER BY rater, code")
    assert given == [
        ("Ada", "does_not_match", 1),
        ("Ada", "matches", texts - 1),
        ("Bo", "matches", texts - 1),
        ("Bo", "partly", 1),
    ]
    context.close()
