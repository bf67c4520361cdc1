"""A server with the studies of a whole procedure, and a participant's page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from study.service import Service
from tests.browser.participation import WHOLE
from tests.conftest import write_bundle
from tests.server import Server, serving

DESKTOP = {"width": 1280, "height": 720}

SHORT = {**WHOLE, "pacing": {"break_every": 2, "catch": 1, "confidence": True}}

CONTACT = {
    "researcher": "Ada <script>alert(1)</script> & Co",
    "email": "ada+study@example.org",
    "board": "Board <b>B</b>",
    "approval": "7/21",
}

STUDIES: dict[str, dict[str, Any]] = {
    "whole": SHORT,
    "deutsch": {**SHORT, "language": "de", "contact": CONTACT},
    "large": {"device": {"width": 1000, "height": 700, "touch": False}},
    "slow": {"pacing": {"slow_seconds": 5}},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("road")
    with Service(home) as service:
        for name, config in STUDIES.items():
            folder = write_bundle(home / name, name=name, trials=3, practice=1, config=config)
            service.researcher.open_study(folder, per_condition=20)
    with serving(home) as running:
        yield running


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(
        viewport=DESKTOP,  # type: ignore[arg-type]
        reduced_motion="no-preference",
        user_agent="Mozilla/5.0 (Secret Device) Chrome/133.7.7",
    )
    opened = context.new_page()
    broken: list[str] = []
    opened.on("pageerror", lambda error: broken.append(str(error)))
    yield opened
    context.close()
    assert broken == []


def answer_check(page: Page, *chosen: int) -> None:
    page.wait_for_selector("#check:not([hidden]) form fieldset")
    for question, option in enumerate(chosen):
        page.check(f'#check input[name="q{question}"][value="{option}"]')
    page.click("#answer-check")
