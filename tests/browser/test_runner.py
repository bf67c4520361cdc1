"""The participant's page in a real browser, against a real server and its database."""

from __future__ import annotations

import json
import re
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, Request, Response, Route, expect

from study.bundle import Bundle, Trial
from tests.server import Server

pytestmark = pytest.mark.browser

CONDITIONS = ("none", "saliency", "examples", "both")
PRACTICE, MAIN = 2, 6
DESKTOP = {"width": 1280, "height": 720}
PHONE = {"width": 390, "height": 844}
TOUCH_MS = 260  # an answer is taken from 200 ms after onset on


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(viewport=DESKTOP)  # type: ignore[arg-type]
    opened = context.new_page()
    broken: list[str] = []
    opened.on("pageerror", lambda error: broken.append(str(error)))
    yield opened
    context.close()
    assert broken == []


def query(server: Server, sql: str, *values: object) -> list[tuple[Any, ...]]:
    with sqlite3.connect(server.home / "foretell.db") as db:
        return db.execute(sql, values).fetchall()


def newest(server: Server) -> str:
    """The session that began last."""
    [(session_id,)] = query(server, "SELECT session_id FROM session ORDER BY started_at DESC LIMIT 1")
    return str(session_id)


def shown(page: Page, number: int) -> None:
    """Wait until trial `number` of this stretch can be answered."""
    page.wait_for_selector(f'#trial[data-phase="shown"][data-number="{number}"]')
    page.wait_for_timeout(TOUCH_MS)


def to_practice(page: Page, url: str) -> None:
    page.goto(url)
    agree(page)
    page.click("#understood")  # waits for the reading time
    page.click("#seen")
    page.click("#begin")


def agree(page: Page) -> None:
    page.wait_for_selector("#consent:not([hidden])")
    for box in page.locator("#boxes input").all():
        box.check()
    page.click("#accept")


def practise(page: Page, key: str = "f") -> None:
    for number in range(1, PRACTICE + 1):
        shown(page, number)
        page.keyboard.press(key)
        page.click("#next")


def to_main(page: Page, server: Server, **begin: Any) -> None:
    """The page at the first main trial; everything before is done over HTTP, which is faster."""
    cookies = server.login() if begin.get("preview") else None
    with httpx.Client(base_url=f"{server.url}/api/v1", cookies=cookies) as client:
        token = client.post("begin", json={"study": "demo", **begin}).json()["token"]
        client.headers["X-Session-Token"] = token
        client.post("consent", json={"agreed": True})
        client.post("ready", json={"stage": "instructions"})
        client.post("ready", json={"stage": "example"})
        for index in range(PRACTICE):
            answer = {
                "trial_index": index,
                "attempt_id": str(uuid.uuid4()),
                "side": "left",
                "input": "key",
                "rt_ms": 500,
            }
            assert client.post("responses", json=answer).status_code == 201
    page.goto(f"{server.url}/run/demo#{token}")
    page.click("#begin")


def trials_of(server: Server) -> dict[str, Trial]:
    manifest = Bundle(server.home / "bundle").manifest
    return {trial.id: trial for trial in (*manifest.practice, *manifest.trials)}


def test_a_whole_participation_is_stored_exactly_once(page: Page, server: Server) -> None:
    """Keys, clicks and a key held down; every answer once, as pressed, with a plausible time."""
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    to_practice(page, f"{server.url}/run/demo?pid=5f3a9c0d1e2b")
    practise(page)
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
        shown(page, number)
        page.wait_for_timeout(140)
        press()
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
    assert all(TOUCH_MS + 140 - 40 < delay < 4000 for delay in delays)  # never shorter than what was waited
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
    assert all(lag > 0 for _, lag in known)


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
    shown(page, 1)
    before = [*bodies, page.content()]
    assert not any("The AI called this picture" in text for text in before)
    page.keyboard.press("f")
    page.wait_for_selector("#feedback:not([hidden])")
    practice = next(trial for trial in trials.values() if trial.id == "practice-0")
    assert page.text_content("#feedback p") == f"The AI called this picture “{practice.target}”."
    page.click("#next")
    shown(page, 2)
    page.keyboard.press("f")
    page.click("#next")
    page.click("#begin")
    for number in range(1, MAIN + 1):
        shown(page, number)
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
        shown(page, 1)
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
        _LAYOUTS.setdefault(str(size), layout)
        assert layout == _LAYOUTS[str(size)]
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
    shown(page, 1)
    page.keyboard.press("f")
    shown(page, 2)
    picture = page.get_attribute("#target", "src")
    page.reload()
    expect(page.locator("#ready .prose")).to_have_text(f"You continue with picture 2 of {MAIN}.")
    page.click("#begin")
    shown(page, 2)
    assert page.get_attribute("#target", "src") == picture
    page.keyboard.press("j")
    shown(page, 3)
    rows = query(
        server,
        "SELECT trial_index - ?, side, n_exposures, resumed FROM response "
        "WHERE session_id = ? AND trial_index >= ? ORDER BY 1",
        PRACTICE,
        newest(server),
        PRACTICE,
    )
    assert rows == [(0, "left", 1, 0), (1, "right", 2, 1)]


EARLY = """
addEventListener("DOMContentLoaded", () => {
  const trial = document.getElementById("trial");
  const press = (key, repeat = false) => dispatchEvent(new KeyboardEvent("keydown", { key, repeat }));
  new MutationObserver(() => {
    if (trial.dataset.number !== "1") return;
    if (trial.dataset.phase === "fixation") for (let i = 0; i < 5; i++) setTimeout(() => press("j"), 10 * i);
    if (trial.dataset.phase !== "shown") return;
    requestAnimationFrame(() => requestAnimationFrame(() => {
      setTimeout(() => press("j"), 30);
      for (const at of [250, 300, 350]) setTimeout(() => press("j", true), at);
      setTimeout(() => press("f"), 400);
    }));
  }).observe(trial, { attributeFilter: ["data-phase"] });
});
"""


def test_early_and_repeated_keys_do_not_count(page: Page, server: Server) -> None:
    """j in the fixation, j 30 ms after the onset and held from then on, at last f: the answer is f."""
    page.add_init_script(EARLY)
    to_main(page, server)
    shown(page, 2)
    page.keyboard.press("f")
    shown(page, 3)  # what was noticed is sent after an acknowledged answer
    where = "session_id = ? AND trial_index = ?"
    [(side, rt_ms)] = query(server, f"SELECT side, rt_ms FROM response WHERE {where}", newest(server), PRACTICE)
    assert side == "left"
    assert rt_ms >= 400
    sql = f"SELECT count(*) FROM event WHERE {where} AND kind = 'anticipation'"
    assert query(server, sql, newest(server), PRACTICE) == [(6,)]


def test_answers_given_offline_arrive_once(page: Page, server: Server) -> None:
    """The connection fails at one answer: three are given ahead, and no further before it is back."""
    to_main(page, server)
    shown(page, 1)
    page.context.set_offline(True)
    page.keyboard.press("f")
    shown(page, 2)
    expect(page.locator("#saved")).to_have_attribute("data-state", "offline")
    page.keyboard.press("j")
    shown(page, 3)
    page.keyboard.press("j")
    expect(page.locator("#trial")).to_have_attribute("data-phase", "blank")
    page.wait_for_timeout(600)
    assert page.get_attribute("#trial", "data-phase") == "blank"  # never a fourth
    page.context.set_offline(False)
    shown(page, 4)
    expect(page.locator("#saved")).to_have_attribute("data-state", "saved")
    sql = "SELECT side FROM response WHERE session_id = ? AND trial_index >= ? ORDER BY trial_index"
    assert query(server, sql, newest(server), PRACTICE) == [("left",), ("right",), ("right",)]


def test_an_answer_whose_acknowledgement_is_lost_is_stored_once(page: Page, server: Server) -> None:
    """The server keeps the answer but its reply never arrives; then the page is reloaded. One row, no conflict."""
    to_main(page, server)
    shown(page, 1)

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
    shown(page, 1)
    page.route("**/api/v1/responses", lambda route: route.abort())
    page.keyboard.press("j")
    expect(page.locator("#saved")).to_have_attribute("data-state", "offline")
    page.unroute("**/api/v1/responses")
    page.reload()
    expect(page.locator("#ready .prose")).to_have_text(f"You continue with picture 2 of {MAIN}.")
    rows = query(server, "SELECT side FROM response WHERE session_id = ? AND trial_index = ?", newest(server), PRACTICE)
    assert rows == [("right",)]


def test_a_picture_that_does_not_load_stops_the_study_until_it_does(page: Page, server: Server) -> None:
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
    shown(page, 1)


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
    """WCAG 2.2, 1.4.3: 4.5 : 1 for the colours as computed, by the formula of relative luminance in the standard."""
    context = chromium.new_context(viewport=DESKTOP, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    server.let_in(context)
    page.goto(f"{server.url}/run/demo?preview=both")
    page.wait_for_selector("#consent:not([hidden])")
    names = ("ground", "card", "soft", "ink", "quiet", "accent", "on-accent", "warn")
    colour = {
        name: page.evaluate("n => getComputedStyle(document.documentElement).getPropertyValue('--' + n)", name).strip()
        for name in names
    }
    for text, ground in [
        *((text, ground) for text in ("ink", "quiet") for ground in ("ground", "card", "soft")),
        ("on-accent", "accent"), ("warn", "ground"),
    ]:  # fmt: skip
        assert contrast(colour[text], colour[ground]) >= 4.5, (text, ground, colour)
    context.close()


def contrast(one: str, two: str) -> float:
    lights = sorted((luminance(one), luminance(two)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
