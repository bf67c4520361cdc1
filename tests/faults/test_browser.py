"""What goes wrong in a browser, at every trial: connection, reload, back, mashed keys, tabs, clocks, a dead server.

Each test ends with the same questions to the database: one answer for each trial, in order, and a chain that holds.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from study.service import Service
from tests.browser.participation import at_main, newest, query, wait_for_trial
from tests.conftest import write_bundle
from tests.server import Server, serving

pytestmark = pytest.mark.browser
TRIALS = 3
"""The first, one between, the last."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("faults")
    with Service(home) as service:
        folder = write_bundle(home / "bundle", name="demo", trials=TRIALS, practice=0, side=48)
        service.researcher.open_study(folder, per_condition=20)
    with serving(home) as running:
        yield running


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 1000, "height": 720})
    yield context.new_page()
    context.close()


def start(page: Page, server: Server) -> str:
    page.goto(at_main(server, "demo", 0))
    page.click("#begin")
    return newest(server)


def sound(page: Page, server: Server, session_id: str, sides: list[str], conflicts: int = 0) -> None:
    """The code is shown, every trial has the answer that was given, once, and the database verifies."""
    page.wait_for_selector("#end:not([hidden])")
    rows = query(server, "SELECT trial_index, side FROM response WHERE session_id = ? ORDER BY 1", session_id)
    assert rows == list(enumerate(sides))
    found = query(server, "SELECT count(*) FROM response_conflict WHERE session_id = ?", session_id)
    assert found == [(conflicts,)]
    with Service(server.home) as service:
        assert service.researcher.verify() == []


def press(page: Page, number: int) -> str:
    side = random.Random(number).choice(("left", "right"))
    page.keyboard.press("f" if side == "left" else "j")
    return side


def test_offline_and_online_at_every_trial(page: Page, server: Server) -> None:
    me, sides = start(page, server), []
    for number in range(1, TRIALS + 1):
        wait_for_trial(page, number)
        page.context.set_offline(True)
        sides.append(press(page, number))
        expect(page.locator("#saved")).to_have_attribute("data-state", "offline")
        page.context.set_offline(False)
    sound(page, server, me, sides)


def test_reload_and_back_at_every_trial(page: Page, server: Server) -> None:
    """The same unanswered trial comes again, counted as another exposure; an answer just given is not lost."""
    me, sides = start(page, server), []
    for number in range(1, TRIALS + 1):
        wait_for_trial(page, number)
        if number % 2:
            page.reload()
        else:
            page.goto(f"{server.url}/runner/icon.svg")
            page.go_back()
        page.click("#begin")
        wait_for_trial(page, number)
        sides.append(press(page, number))
    sound(page, server, me, sides)
    exposed = query(server, "SELECT n_exposures, resumed FROM response WHERE session_id = ? ORDER BY trial_index", me)
    assert exposed == [(2, 1)] * TRIALS


def test_reload_right_after_every_answer(page: Page, server: Server) -> None:
    """Requests are held up so that each answer is only in the browser's own memory when the page goes."""
    me, sides = start(page, server), []
    for number in range(1, TRIALS + 1):
        wait_for_trial(page, number)
        page.route("**/api/v1/responses", lambda route: route.abort())
        sides.append(press(page, number))
        expect(page.locator("#saved")).to_have_attribute("data-state", "offline")
        page.unroute("**/api/v1/responses")
        page.reload()
        if number < TRIALS:
            page.click("#begin")
    sound(page, server, me, sides)


MASH = """
addEventListener("DOMContentLoaded", () => {
  const trial = document.getElementById("trial");
  new MutationObserver(() => {
    if (trial.dataset.phase !== "shown") return;
    const number = Number(trial.dataset.number);
    for (const at of [0, 1, 10, 50, 100, 200, 230, 231, 240, 260, 280, 300]) setTimeout(() => {
      dispatchEvent(new KeyboardEvent("keydown", { key: "f" }));
      document.getElementById(number % 2 ? "left" : "right").click();
    }, 60 + at);
  }).observe(trial, { attributeFilter: ["data-phase"] });
});
"""


def test_double_clicks_and_mashed_keys_answer_once(page: Page, server: Server) -> None:
    """Two dozen presses from before the onset on: the first admissible one counts, the next trial gets none."""
    page.add_init_script(MASH)
    me = start(page, server)
    page.wait_for_selector("#end:not([hidden])")
    sound(page, server, me, ["left"] * TRIALS)
    times = query(server, "SELECT min(rt_ms) >= 200 FROM response WHERE session_id = ?", me)
    assert times == [(1,)]


def test_two_tabs(page: Page, server: Server) -> None:
    """The second asks before it takes over, the first is then frozen and can take it back; no answer is doubled.

    As in two browsers: the first learns of the second by its own answer only.
    """
    page.context.add_init_script("delete window.BroadcastChannel")
    me = start(page, server)
    wait_for_trial(page, 1)
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator("#message .title")).to_have_text("This study is open somewhere else")
    other.click("#again")
    other.click("#begin")
    wait_for_trial(other, 1)
    page.bring_to_front()
    page.keyboard.press("f")
    expect(page.locator("#message .title")).to_have_text("This study is open somewhere else")
    assert query(server, "SELECT count(*) FROM response WHERE session_id = ?", me) == [(0,)]
    other.bring_to_front()
    other.keyboard.press("j")
    wait_for_trial(other, 2)
    page.bring_to_front()
    page.click("#again")  # its own answer comes too late: it is kept as a conflict
    page.click("#begin")
    sides = ["right"]
    for number in range(2, TRIALS + 1):
        wait_for_trial(page, number)
        sides.append(press(page, number))
    sound(page, server, me, sides, conflicts=1)


def test_a_tab_that_was_taken_over_says_so_by_itself(page: Page, server: Server) -> None:
    """Catches a first tab that goes on showing a trial whose answer would be refused, and a second that reloads too."""
    me = start(page, server)
    wait_for_trial(page, 1)
    other = page.context.new_page()
    other.goto(page.url)
    other.click("#again")
    expect(page.locator("#message .title")).to_have_text("This study is open somewhere else")
    page.keyboard.press("f")
    other.click("#begin")
    sides = []
    for number in range(1, TRIALS + 1):
        wait_for_trial(other, number)
        sides.append(press(other, number))
    sound(other, server, me, sides)


def test_a_copied_tab_is_another_tab(page: Page, server: Server) -> None:
    """A copy gets the session storage of its original: the tab's name must not be in it, also after a reload."""
    start(page, server)
    wait_for_trial(page, 1)
    page.reload()
    page.click("#begin")
    wait_for_trial(page, 1)
    with page.expect_popup() as popup:
        page.evaluate("() => { open(location.href); }")
    expect(popup.value.locator("#message .title")).to_have_text("This study is open somewhere else")


def test_a_clock_that_jumps_changes_no_time(page: Page, server: Server) -> None:
    """The wall clock of the browser jumps a day back and forth; times are differences on the steady one."""
    page.add_init_script(
        "{ const now = Date.now.bind(Date); let n = 0; Date.now = () => now() + 864e5 * ((n += 1) % 3 - 1); }"
    )
    me, sides = start(page, server), []
    for number in range(1, TRIALS + 1):
        wait_for_trial(page, number)
        sides.append(press(page, number))
    sound(page, server, me, sides)
    [(least, most)] = query(server, "SELECT min(rt_ms), max(rt_ms) FROM response WHERE session_id = ?", me)
    assert 200 <= least <= most < 60_000


def test_replies_that_never_come_and_come_twice(page: Page, server: Server) -> None:
    """The server keeps the answer, the reply is lost, and the request is sent once more beside the page's own retry."""
    me, sides = start(page, server), []

    def twice(route: Route) -> None:
        route.fetch()
        route.fetch()
        route.abort()
        page.unroute("**/api/v1/responses")

    for number in range(1, TRIALS + 1):
        wait_for_trial(page, number)
        page.route("**/api/v1/responses", twice)
        sides.append(press(page, number))
    sound(page, server, me, sides)


def test_the_server_is_killed_at_every_trial(page: Page, server: Server) -> None:
    me, sides = start(page, server), []
    for number in range(1, TRIALS + 1):
        wait_for_trial(page, number)
        if number % 2 == 0:
            server.kill()
        sides.append(press(page, number))
        if number % 2 == 0:
            server.start()
    sound(page, server, me, sides)
