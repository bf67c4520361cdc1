"""A participant's page in Chromium, and the steps to its trials."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page

from tests.server import Server

PRACTICE, MAIN = 2, 6

DESKTOP = {"width": 1280, "height": 720}


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(viewport=DESKTOP)  # type: ignore[arg-type]
    opened = context.new_page()
    broken: list[str] = []
    opened.on("pageerror", lambda error: broken.append(str(error)))
    yield opened
    context.close()
    assert broken == []


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
