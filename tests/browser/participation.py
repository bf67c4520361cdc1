"""What a browser does during a participation, for tests of the page and of its faults."""

from __future__ import annotations

import re
import sqlite3
import time
import uuid
from typing import Any

import httpx
from playwright.sync_api import BrowserContext, Page, Request

from tests.conftest import PATIENCE_S
from tests.server import Server

TOUCH_MS = 260  # an answer is taken from 200 ms after onset on
# The onset is the second frame after the phase has changed, which a busy machine paints late.
AFTER_ONSET = """ms => new Promise((resolve) => {
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve, ms)));
})"""

QUESTIONS = [
    {"text": "What do you choose?", "options": ["What I see", "What the AI said"], "answer": "What the AI said"},
    {"text": "Is the AI always right?", "options": ["Yes", "No"], "answer": "No"},
]
ITEMS = [
    {"id": "hard", "kind": "scale", "text": "How hard was it?", "low": "easy", "high": "hard"},
    {"id": "which", "kind": "choice", "text": "Which way?", "options": ["by the map", "by guessing"]},
    {"id": "how", "kind": "text", "text": "In your words?", "required": False},
]
WHOLE = {
    "check": {"questions": QUESTIONS},
    "questionnaire": ITEMS,
    "pacing": {"break_every": 4, "catch": 1, "confidence": True},
    "recruiter": {"complete": "DONE42", "screened": "SCREEN7", "url": "https://recruiter.test/complete?cc={code}"},
}


def query(server: Server, sql: str, *values: object) -> list[tuple[Any, ...]]:
    with sqlite3.connect(server.home / "foretell.db") as db:
        return db.execute(sql, values).fetchall()


def newest(server: Server) -> str:
    """The session that began last."""
    [(session_id,)] = query(server, "SELECT session_id FROM session ORDER BY started_at DESC LIMIT 1")
    return str(session_id)


def agree(page: Page) -> None:
    page.wait_for_selector("#consent:not([hidden])")
    for box in page.locator("#boxes input").all():
        box.check()
    page.click("#accept")


def keep_traffic(context: BrowserContext) -> list[str]:
    """Return a list that grows with what the network carries: each image's address, each other response's text."""
    carried: list[str] = []

    def keep(request: Request) -> None:
        response = request.response()
        # The reply to events that a page sends when it is left comes when it is gone.
        is_bare = "/assets/" in request.url or request.url.endswith("/events")
        carried.append(request.url if is_bare or response is None else f"{request.url} {response.text()}")

    context.on("requestfinished", keep)
    return carried


def wait_until_kept(page: Page, carried: list[str], pattern: str, times: int) -> None:
    """Wait until what `keep_traffic` has kept says something so many times: a text is read after its reply has come."""
    deadline = time.monotonic() + PATIENCE_S
    while len(re.findall(pattern, "\n".join(carried))) < times:
        assert time.monotonic() < deadline, pattern
        page.wait_for_timeout(TOUCH_MS)


def wait_for_trial(page: Page, number: int) -> None:
    """Wait until trial `number` of this stretch can be answered."""
    page.wait_for_selector(f'#trial[data-phase="shown"][data-number="{number}"]')
    page.evaluate(AFTER_ONSET, TOUCH_MS)


def tab_to(page: Page, selector: str) -> None:
    """Go on by the Tab key until `selector` has the focus."""
    for _ in range(40):
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{selector} cannot be reached by the keyboard")


def at_main(server: Server, study: str, practice: int, **begin: Any) -> str:
    """The link to the first main trial; everything before is done over HTTP, which is faster."""
    cookies = server.login() if begin.get("preview") else None
    with httpx.Client(base_url=f"{server.url}/api/v1", cookies=cookies) as client:
        token = client.post("begin", json={"study": study, **begin}).json()["token"]
        client.headers["X-Session-Token"] = token
        client.post("consent", json={"agreed": True})
        for stage in ("instructions", "example"):
            client.post("ready", json={"stage": stage})
        for index in range(practice):
            sent = {"trial_index": index, "attempt_id": str(uuid.uuid4()), "side": "left", "input": "key", "rt_ms": 500}
            assert client.post("responses", json=sent).status_code == 201
    return f"{server.url}/run/{study}#{token}"
