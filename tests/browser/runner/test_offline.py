"""Responses that the network loses, keys that come early, and images that do not load."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Request, Route, expect

from tests.browser.participation import agree, newest, query, wait_for_trial
from tests.browser.runner.conftest import MAIN, PRACTICE, to_main
from tests.server import Server

pytestmark = pytest.mark.browser

EARLY = """
addEventListener("DOMContentLoaded", () => {
  const trial = document.getElementById("trial");
  // A press has the moment at which the key went down, as from a keyboard, however late a busy machine handles it.
  const press = (key, at) => dispatchEvent(Object.defineProperty(
    new KeyboardEvent("keydown", { key }), "timeStamp", { value: at }));
  const hold = (key) => dispatchEvent(new KeyboardEvent("keydown", { key, repeat: true }));
  new MutationObserver(() => {
    if (trial.dataset.number !== "1") return;
    const now = performance.now();
    if (trial.dataset.phase === "fixation") for (let i = 0; i < 5; i++) setTimeout(press, 10 * i, "j", now + 10 * i);
    if (trial.dataset.phase !== "shown") return;
    requestAnimationFrame(() => requestAnimationFrame((onset) => {
      setTimeout(press, 30, "j", onset + 30);
      for (const at of [250, 300, 350]) setTimeout(hold, at, "j");
      setTimeout(press, 400, "f", onset + 400);
    }));
  }).observe(trial, { attributeFilter: ["data-phase"] });
});
"""


def test_early_and_repeated_keys_do_not_count(page: Page, server: Server) -> None:
    """j in the fixation, j 30 ms after the onset and held from then on, at last f: the answer is f."""
    page.add_init_script(EARLY)
    to_main(page, server)
    wait_for_trial(page, 2)
    page.keyboard.press("f")
    wait_for_trial(page, 3)  # what was noticed is sent after an acknowledged answer
    where = "session_id = ? AND trial_index = ?"
    [(side, rt_ms)] = query(server, f"SELECT side, rt_ms FROM response WHERE {where}", newest(server), PRACTICE)
    assert side == "left"
    assert round(rt_ms, 6) >= 400  # a difference of two moments
    sql = f"SELECT count(*) FROM event WHERE {where} AND kind = 'anticipation'"
    assert query(server, sql, newest(server), PRACTICE) == [(6,)]


def test_answers_given_offline_arrive_once(page: Page, server: Server) -> None:
    """The connection fails at one answer: three are given ahead, and no further before it is back."""
    to_main(page, server)
    wait_for_trial(page, 1)
    page.context.set_offline(True)
    page.keyboard.press("f")
    wait_for_trial(page, 2)
    expect(page.locator("#saved")).to_have_attribute("data-state", "offline")
    page.keyboard.press("j")
    wait_for_trial(page, 3)
    page.keyboard.press("j")
    expect(page.locator("#trial")).to_have_attribute("data-phase", "blank")
    page.wait_for_timeout(600)
    assert page.get_attribute("#trial", "data-phase") == "blank"  # never a fourth
    said = page.locator("#saved")
    expect(said).to_have_text("Offline: will be sent as soon as possible")
    place, height = said.bounding_box(), page.evaluate("innerHeight")
    assert place
    assert 0.25 * height < place["y"] < 0.6 * height  # in the middle, where the picture was
    page.context.set_offline(False)
    wait_for_trial(page, 4)
    expect(page.locator("#saved")).to_have_attribute("data-state", "saved")
    sql = "SELECT side FROM response WHERE session_id = ? AND trial_index >= ? ORDER BY trial_index"
    assert query(server, sql, newest(server), PRACTICE) == [("left",), ("right",), ("right",)]


def test_an_answer_whose_acknowledgement_is_lost_is_stored_once(page: Page, server: Server) -> None:
    """The server keeps the answer but its reply never arrives; then the page is reloaded. One row, no conflict."""
    to_main(page, server)
    wait_for_trial(page, 1)

    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/api/v1/responses", lose)
    page.keyboard.press("f")
    expect(page.locator("#saved")).to_have_attribute("data-state", "offline")
    page.unroute("**/api/v1/responses")
    page.reload()
    expect(page.locator("#ready .prose")).to_have_text(f"You continue with picture 2 of {MAIN}.")
    kept = "SELECT count(*) FROM response WHERE session_id = ? AND trial_index = ?"
    assert query(server, kept, newest(server), PRACTICE) == [(1,)]
    assert query(server, "SELECT count(*) FROM response_conflict WHERE session_id = ?", newest(server)) == [(0,)]


def test_an_answer_that_never_left_survives_a_reload(page: Page, server: Server) -> None:
    """No request gets through, the page is reloaded: the answer comes from the browser's own memory."""
    to_main(page, server)
    wait_for_trial(page, 1)
    page.route("**/api/v1/responses", lambda route: route.abort())
    page.keyboard.press("j")
    expect(page.locator("#saved")).to_have_attribute("data-state", "offline")
    page.unroute("**/api/v1/responses")
    page.reload()
    expect(page.locator("#ready .prose")).to_have_text(f"You continue with picture 2 of {MAIN}.")
    rows = query(server, "SELECT side FROM response WHERE session_id = ? AND trial_index = ?", newest(server), PRACTICE)
    assert rows == [("right",)]


def test_a_image_that_does_not_load_stops_the_study_until_it_does(page: Page, server: Server) -> None:
    refused: list[Request] = []

    def refuse(route: Route) -> None:
        refused.append(route.request)
        route.abort()

    page.route("**/assets/**", refuse)
    server.let_in(page.context)
    page.goto(f"{server.url}/run/demo?preview=none")
    agree(page)
    page.click("#understood")
    page.wait_for_selector("#again:not([hidden])")
    assert not page.locator("#example").is_visible()
    page.unroute("**/assets/**")
    page.click("#again")
    page.wait_for_selector("#example:not([hidden])")
    refused.clear()
    page.route("**/assets/**", refuse)
    page.click("#seen")
    page.wait_for_selector("#again:not([hidden])")
    assert refused
    assert not page.locator("#begin").is_enabled()
    page.unroute("**/assets/**")
    page.click("#again")
    page.click("#begin")
    wait_for_trial(page, 1)
