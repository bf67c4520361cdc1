"""A participant's page in Chromium, and the steps to its trials."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page

from study.service import Service
from tests.browser.participation import agree, wait_for_trial
from tests.conftest import write_bundle
from tests.server import Server, serving

PRACTICE, MAIN = 2, 6

DESKTOP = {"width": 1280, "height": 720}


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(viewport=DESKTOP, reduced_motion="no-preference")  # type: ignore[arg-type]
    opened = context.new_page()
    broken: list[str] = []
    opened.on("pageerror", lambda error: broken.append(str(error)))
    yield opened
    context.close()
    assert broken == []


@contextmanager
def serve_task(
    home: Path,
    task: str,
    *,
    trials: int,
    practice: int,
    conditions: tuple[str, ...] = ("both",),
    settings: dict[str, Any] | None = None,
) -> Iterator[Server]:
    """Serve a study of a task, by default in the condition that shows most: heatmaps and examples."""
    config = {"study": {"task": task}, **(settings or {})}
    folder = write_bundle(
        home / "bundle", name="demo", trials=trials, practice=practice, conditions=conditions, config=config
    )
    with Service(home) as service:
        service.researcher.open_study(folder, per_condition=4)
    with serving(home) as running:
        yield running


def begin_trials(page: Page, server: Server) -> None:
    """Arrive by the link and click through to the first trial, of practice if there is any."""
    page.goto(f"{server.url}/run/demo?pid=5f3a9c0d1e2b")
    agree(page)
    for button in ("#understood", "#seen", "#begin"):
        page.click(button)
    wait_for_trial(page, 1)


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
