"""A real Chromium against a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from study.service import Service
from tests.browser.hand import VISITORS, Hand, Visitor, open_visit
from tests.conftest import write_bundle
from tests.server import Server, serving


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all browser tests, with a study of 6 + 2 trials."""
    home = tmp_path_factory.mktemp("browser")
    with Service(home) as service:
        service.researcher.open_study(
            write_bundle(home / "bundle", name="demo", trials=6, practice=2), per_condition=20
        )
    with serving(home) as running:
        yield running


@pytest.fixture(params=VISITORS, ids=[visitor.name for visitor in VISITORS])
def visitor(request: pytest.FixtureRequest) -> Visitor:
    """Each of the two ways in which a new user walks the researcher's pages."""
    found: Visitor = request.param
    return found


@pytest.fixture
def hand(chromium: Browser, server: Server, visitor: Visitor) -> Iterator[Hand]:
    """Either visitor's hand, on an empty page, logged in to the module's own server if it has one."""
    with open_visit(chromium, server, visitor) as hand:
        yield hand
