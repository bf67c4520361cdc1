"""The typeface of the pages: sent once, and nothing else by its route."""

from __future__ import annotations

import re
import tomllib

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dashboard.server import fonts
from tests.conftest import ROOT


@pytest.fixture
def client() -> TestClient:
    return TestClient(Starlette(routes=list(fonts.routes())))


def test_every_font_that_the_pages_name_is_sent_once(client: TestClient) -> None:
    """Catches a file that is renamed: pages would fall back to the system's fonts without a word."""
    faces = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["theme"]["fontFaces"]
    assert len(faces) == len(fonts.FONTS) == 3
    for face in faces:
        reply = client.get(face["url"])
        assert reply.status_code == 200
        assert reply.content[:4] == b"wOF2"
        assert reply.headers["cache-control"] == "public, max-age=31536000, immutable"


def test_the_documentation_has_the_same_fonts() -> None:
    """Catches a file of the documentation's style that is not there, and letters that only one of both has."""
    style = (ROOT / "docs" / "theme" / "foretell.css").read_text()
    assert set(re.findall(r'url\("(\S+\.woff2)"\)', style)) == set(fonts.FONTS)


@pytest.mark.parametrize("path", ["/fonts/LICENSE_INTER", "/fonts/..%2Fapp.py", "/fonts/other.woff2"])
def test_nothing_else_is_sent(client: TestClient, path: str) -> None:
    """Catches a route that reads any file of the folder, or above it."""
    assert client.get(path).status_code == 404
