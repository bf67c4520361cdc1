"""The participant's page in a real browser, against a real server and its database."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Response, Route, expect

from study.bundle import Bundle, Trial
from tests.browser.participation import TOUCH_MS, agree, newest, query, wait_for_trial
from tests.browser.runner.conftest import DESKTOP, MAIN, PRACTICE, to_main
from tests.contrast import LEAST, measure_contrast
from tests.server import Server

pytestmark = pytest.mark.browser

CONDITIONS = ("none", "saliency", "examples", "both")

PHONE = {"width": 390, "height": 844}


def to_practice(page: Page, url: str) -> None:
    page.goto(url)
    agree(page)
    page.click("#understood")  # waits for the reading time
    page.click("#seen")
    page.click("#begin")


def practise(page: Page, key: str = "f") -> None:
    for number in range(1, PRACTICE + 1):
        wait_for_trial(page, number)
        page.keyboard.press(key)
        page.click("#next")


def trials_of(server: Server) -> dict[str, Trial]:
    manifest = Bundle(server.home / "bundle").manifest
    return {trial.id: trial for trial in (*manifest.practice, *manifest.trials)}


def test_a_whole_participation_is_stored_exactly_once(page: Page, server: Server) -> None:
    """Keys, clicks and a key held down; every answer once, as pressed, with a plausible time."""
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    to_practice(page, f"{server.url}/run/demo?pid=5f3a9c0d1e2b")
    practise(page)
    moments = [time.monotonic()]
    page.click("#begin")
    assert "5f3a9c0d1e2b" not in page.url
    ways: list[tuple[str, str, Callable[[], None]]] = [
        ("left", "key", lambda: page.keyboard.press("f")),
        ("right", "key", lambda: page.keyboard.press("J")),
        ("left", "mouse", lambda: page.click("#left")),
        ("right", "mouse", lambda: page.click("#right")),
        ("left", "key", lambda: (page.keyboard.press("f"), page.keyboard.press("j"))[0]),  # the second comes too late
        ("right", "key", lambda: page.press("#right", "Enter")),
    ]
    for number, (_, _, press) in enumerate(ways, 1):
        wait_for_trial(page, number)
        page.wait_for_timeout(140)
        press()
        moments.append(time.monotonic())
    page.wait_for_selector("#end:not([hidden])")
    rows = query(
        server,
        "SELECT side, input, rt_ms, n_exposures, resumed, shown_sha256 FROM response "
        "WHERE session_id = ? AND trial_index >= ? ORDER BY trial_index",
        newest(server),
        PRACTICE,
    )
    assert [row[:2] for row in rows] == [way[:2] for way in ways]
    delays = [row[2] for row in rows]
    # Never shorter than what was waited, and begun after the press before the last one.
    assert min(delays) > TOUCH_MS + 140 - 40, delays
    longest = [1000 * (end - begin) for begin, end in zip([moments[0], *moments[:-2]], moments[1:], strict=True)]
    assert all(delay < most for delay, most in zip(delays, longest, strict=True)), (delays, longest)
    assert {row[3:5] for row in rows} == {(1, 0)}
    planned = query(
        server, "SELECT shown_sha256 FROM trial_plan WHERE session_id = ? ORDER BY trial_index", newest(server)
    )
    assert [row[5] for row in rows] == [row[0] for row in planned][PRACTICE:]
    for secret in ("5f3a9c0d1e2b", page.url.split("#")[1]):
        assert secret not in server.log()
    [(code,)] = query(server, "SELECT completion_code FROM session WHERE session_id = ?", newest(server))
    assert page.text_content("#code") == code
    assert all(url.startswith(server.url) for url in requested)
    [(anticipations,)] = query(
        server, "SELECT count(*) FROM event WHERE session_id = ? AND kind = 'anticipation'", newest(server)
    )
    assert anticipations >= 1  # the j pressed after the f, in the next fixation
    page.goto(f"{server.url}/run/demo?pid=5f3a9c0d1e2b")  # what showed that it is theirs is erased at the end
    expect(page.locator("#return .prose")).to_contain_text("This study has already been completed with this link")
    page.goto(f"{server.url}/run/demo")
    expect(page.locator("#message h1")).to_have_text("You have finished")
    page.get_by_role("button", name="Another participant begins").click()
    page.wait_for_selector("#consent:not([hidden])")


ROBOT = """
addEventListener("DOMContentLoaded", () => {
  const trial = document.getElementById("trial"), known = window.known = [];
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  new MutationObserver(async () => {
    if (trial.dataset.phase !== "shown") return;
    const revealed = performance.now();
    await frame();
    const onset = await frame();
    setTimeout(() => {
      const press = new KeyboardEvent("keydown", { key: "f" });
      known.push([press.timeStamp - onset, onset - revealed]);
      dispatchEvent(press);
    }, 300 + 50 * known.length);
  }).observe(trial, { attributeFilter: ["data-phase"] });
});
"""


def test_response_times_are_those_of_the_browsers_clock(page: Page, server: Server) -> None:
    """A robot in the page presses a known time after the second frame; a slow network must not show in it."""

    def slow(route: Route) -> None:
        page.wait_for_timeout(250)
        route.continue_()

    page.add_init_script(ROBOT)
    page.route("**/api/v1/responses", slow)
    to_main(page, server)
    page.wait_for_selector("#end:not([hidden])")
    known = page.evaluate("() => window.known")
    sql = "SELECT rt_ms FROM response WHERE session_id = ? AND trial_index >= ? ORDER BY trial_index"
    times = [rt for (rt,) in query(server, sql, newest(server), PRACTICE)]
    assert times == pytest.approx([delay for delay, _ in known], abs=1.0)  # ms
    assert max(lag for _, lag in known) > 1.0  # else times counted from the change of the page would pass as well


def test_nothing_tells_the_answer_before_it_is_given(page: Page, server: Server) -> None:
    """Every reply's body and header and the whole DOM before each answer, in the condition that shows most."""
    bodies: list[str] = []

    def keep(response: Response) -> None:
        if "/api/" in response.url:
            bodies.append(json.dumps(dict(response.headers)) + response.text())

    page.on("response", keep)
    server.let_in(page.context)
    to_practice(page, f"{server.url}/run/demo?preview=both")
    trials = trials_of(server)
    telling = re.compile(
        r'"(none|saliency|examples|both|truth|target_map|alternative|ai_choice|trial_type|condition|correct|item)"'
        r"|adv_incorrect|std_incorrect|std_correct|main-\d|practice-\d|pool/|p_learner|side_flip"
    )
    wait_for_trial(page, 1)
    before = [*bodies, page.content()]
    assert not any("The AI called this picture" in text for text in before)
    page.keyboard.press("f")
    page.wait_for_selector("#feedback:not([hidden])")
    practice = next(trial for trial in trials.values() if trial.id == "practice-0")
    assert page.text_content("#feedback p") == f"The AI called this picture “{practice.target}”."
    page.click("#next")
    wait_for_trial(page, 2)
    page.keyboard.press("f")
    page.click("#next")
    page.click("#begin")
    for number in range(1, MAIN + 1):
        wait_for_trial(page, number)
        assert not telling.search(page.content())
        page.keyboard.press("f")
    page.wait_for_selector("#end:not([hidden])")
    assert len(bodies) > MAIN
    for body in bodies:
        assert not telling.search(body), body
    spoken = [body for body in bodies if "The AI called this picture" in body]
    assert len(spoken) == PRACTICE


@pytest.mark.parametrize("condition", CONDITIONS)
def test_each_condition_draws_its_places_and_one_layout(page: Page, server: Server, condition: str) -> None:
    maps, samples = condition in ("saliency", "both"), condition in ("examples", "both")
    to_main(page, server, preview=True, condition=condition)
    for size in (DESKTOP, PHONE):
        page.set_viewport_size(size)  # type: ignore[arg-type]
        wait_for_trial(page, 1)
        assert page.locator("#target").is_visible()
        assert page.locator("#map").is_visible() == maps
        assert (page.text_content("#map-legend") or "").strip() == (
            "orange: for its choice, blue: against" if maps else ""
        )
        for side in ("left", "right"):
            assert page.locator(f"#{side}-samples img").count() == (2 if samples else 0)
            name = page.text_content(f"#{side} span")
            legend = (page.text_content(f"#{side}-legend") or "").strip()
            assert legend == (f"The AI calls these “{name}”" if samples else "")
            box = page.locator(f"#{side}").bounding_box()
            assert box
            assert box["height"] >= 44
            assert box["y"] + box["height"] <= size["height"]
        layout = page.evaluate(
            "() => [...document.querySelectorAll('#target, .option, .answers')].map(e => e.getBoundingClientRect())"
            ".map(b => [b.x, b.y, b.width, b.height].map(Math.round))"
        )
        if condition == "none" and size == PHONE:  # nothing but the picture, which fills the width
            assert page.locator("#target").bounding_box()["width"] > 0.9 * size["width"]  # type: ignore[index]
        else:
            assert layout == _LAYOUTS.setdefault(str(size), layout)
        height, width = page.evaluate(
            "() => [document.documentElement.scrollHeight, document.documentElement.scrollWidth]"
        )
        assert (height, width) == (size["height"], size["width"])
        clipped = page.evaluate(
            "() => [...document.querySelectorAll('#trial figcaption, .option > p')]"
            ".filter(e => e.scrollHeight > e.clientHeight + 1).map(e => e.textContent)"
        )
        assert clipped == []
        alts = page.eval_on_selector_all("#trial img:not([hidden])", "images => images.map(i => i.alt)")
        assert all(re.fullmatch(r"picture \d+( with a heatmap|, example \d on the (left|right))?", alt) for alt in alts)


_LAYOUTS: dict[str, Any] = {}


def test_reload_resumes_at_the_same_trial(page: Page, server: Server) -> None:
    to_main(page, server)
    wait_for_trial(page, 1)
    page.keyboard.press("f")
    wait_for_trial(page, 2)
    picture = page.get_attribute("#target", "src")
    page.reload()
    expect(page.locator("#ready .prose")).to_have_text(f"You continue with picture 2 of {MAIN}.")
    page.click("#begin")
    wait_for_trial(page, 2)
    assert page.get_attribute("#target", "src") == picture
    page.keyboard.press("j")
    wait_for_trial(page, 3)
    rows = query(
        server,
        "SELECT trial_index - ?, side, n_exposures, resumed FROM response "
        "WHERE session_id = ? AND trial_index >= ? ORDER BY 1",
        PRACTICE,
        newest(server),
        PRACTICE,
    )
    assert rows == [(0, "left", 1, 0), (1, "right", 2, 1)]


def test_declining_is_one_click(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/run/demo")
    assert not page.locator("#accept").is_enabled()
    page.click("#decline")
    expect(page.locator("#end .prose")).to_contain_text("You chose not to take part")
    assert query(server, "SELECT stage FROM session WHERE session_id = ?", newest(server)) == [("declined",)]


def test_an_unknown_study_is_said(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/run/dmo")
    expect(page.locator("#message .prose")).to_contain_text("There is no study at this address")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(chromium: Browser, server: Server, scheme: Any) -> None:
    """WCAG 2.2, 1.4.3: 4.5 : 1 for the colours as computed, by the formula of relative luminance in the standard.

    Catches images on another ground for participants whose system is dark, unless the study allows it.
    """
    context = chromium.new_context(viewport=DESKTOP, color_scheme=scheme, reduced_motion="no-preference")  # type: ignore[arg-type]
    page = context.new_page()
    server.let_in(context)
    page.goto(f"{server.url}/run/demo?preview=both")
    page.wait_for_selector("#consent:not([hidden])")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(245, 246, 248)"  # #f5f6f8
    page.evaluate("document.documentElement.dataset.colours = 'system'")
    assert page.evaluate(ground) == ("rgb(20, 22, 27)" if scheme == "dark" else "rgb(245, 246, 248)")
    names = ("ground", "card", "soft", "ink", "quiet", "accent", "on-accent", "warn")
    colour = {
        name: page.evaluate("n => getComputedStyle(document.documentElement).getPropertyValue('--' + n)", name).strip()
        for name in names
    }
    for text, ground in [
        *((text, ground) for text in ("ink", "quiet") for ground in ("ground", "card", "soft")),
        ("on-accent", "accent"), ("warn", "ground"),
    ]:  # fmt: skip
        assert measure_contrast(colour[text], colour[ground]) >= LEAST, (text, ground, colour)
    context.close()
