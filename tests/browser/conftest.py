"""A real Chromium against a real server."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from study.service import Service
from tests.conftest import write_bundle
from tests.server import Server, serving

CHROMIUM = os.environ.get("FORETELL_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser; skipped visibly where there is none."""
    with sync_playwright() as playwright:
        if CHROMIUM is None and not Path(playwright.chromium.executable_path).exists():
            pytest.skip("no Chromium; install one or set FORETELL_CHROMIUM")
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all browser tests, with a study of 6 + 2 trials."""
    home = tmp_path_factory.mktemp("browser")
    with Service(home) as service:
        service.open_study(write_bundle(home / "bundle", name="demo", trials=6, practice=2), per_condition=20)
    with serving(home) as running:
        yield running
