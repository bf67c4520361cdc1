"""The task `accept_reject` in a real browser: the AI's label on the screen, and what reaches the browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Response, expect

from study.bundle import Bundle
from tests.browser.participation import agree, newest, query, wait_for_trial
from tests.browser.runner.conftest import serve_task
from tests.server import Server

pytestmark = pytest.mark.browser

TRIALS, PRACTICE = 3, 1
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a study of `accept_reject` that shows most: heatmaps and examples."""
    with serve_task(tmp_path_factory.mktemp("label"), "accept_reject", trials=TRIALS, practice=PRACTICE) as running:
        yield running


def test_the_label_appears_with_the_image_and_the_rest_stays_sealed(page: Page, asking: Server) -> None:
    """Catches a label that is seen before the image or cut off, an image of the true class that is loaded, a side
    exchanged on the way to the database, and a page that scrolls because of the label."""
    manifest = Bundle(asking.home / "bundle").manifest
    trials = {trial.id: trial for trial in (*manifest.trials, *manifest.practice)}
    loaded: list[str] = []

    def keep(response: Response) -> None:
        if "/assets/" in response.url:
            loaded.append(response.url.rpartition("/")[2])

    page.on("response", keep)
    page.goto(f"{asking.url}/run/demo?pid=5f3a9c0d1e2b")
    agree(page)
    page.click("#understood")
    expect(page.locator("#mini [data-part=label]")).to_contain_text("The AI says")
    page.click("#seen")
    page.click("#begin")
    page.wait_for_selector('#trial[data-phase="fixation"]')
    expect(page.locator("#label")).to_be_hidden()
    wait_for_trial(page, 1)
    practice = manifest.practice[0]
    expect(page.locator("#label")).to_have_text(f"The AI says: “{practice.target}”.")
    expect(page.locator("#label-samples img")).to_have_count(2)
    page.keyboard.press("f")
    expect(page.locator("#feedback p")).to_have_text(f"The true name of this picture is “{practice.truth}”.")
    page.click("#next")
    page.click("#begin")
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    for number in range(1, TRIALS + 1):
        wait_for_trial(page, number)
        assert page.evaluate("() => document.documentElement.scrollHeight <= innerHeight")
        assert page.evaluate("() => label.scrollWidth <= label.clientWidth")
        page.get_by_role("button", name="The AI is right").click()
    page.wait_for_selector("#end:not([hidden])")
    sealed = {
        name
        for trial in trials.values()
        for name in set(trial.assets.every) - set(trial.assets.list_of_option(trial.target))
    }
    assert loaded
    assert not sealed & set(loaded)
    sql = "SELECT choice FROM response WHERE session_id = ? AND trial_index >= ?"
    assert query(asking, sql, newest(asking), PRACTICE) == [("a",)] * TRIALS  # accepted, whatever the side
