"""The page Help: its guides, and the check of the installation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from dashboard.home import guides, helping
from dashboard.server import documentation
from tests.conftest import ROOT


def script() -> None:
    from dashboard.home import helping

    helping.page()


def open_help(**query: str) -> AppTest:
    app = AppTest.from_function(script)
    for name, value in query.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


def test_a_guide_is_read_on_the_page(workspace: Path) -> None:
    """Catches a Help page that only names a command, and a link to a guide that opens another one."""
    app = open_help(guide="how-to/find-images")
    assert app.header[0].value == guides.list_guides()["how-to/find-images"]
    written = (ROOT / "docs" / "how-to" / "find-images.md").read_text(encoding="utf-8")
    assert written.split("\n\n")[1] in app.markdown[0].value
    assert not app.warning
    app.selectbox(key="guide").set_value("start").run()
    assert "start" in app.query_params["guide"]
    assert app.header[0].value == "Start"


def test_an_unknown_guide_is_said(workspace: Path) -> None:
    """Catches a path that leads out of the guides."""
    app = open_help(guide="../README")
    assert app.warning[0].value.startswith("The link names the guide “../README”, which does not exist here.")


def test_links_between_guides_open_guides(workspace: Path) -> None:
    """Catches relative paths, which on this page lead nowhere."""
    known = guides.list_guides()
    assert len(known) > 60
    for name in known:
        text = guides.read_guide(name)
        assert not re.search(r"\]\([^)\s:]*\.(md|ipynb)[#)]", text), name
        assert {found[1] for found in re.finditer(r"/help\?guide=([^)]*)\)", text)} <= set(known), name


def test_where_the_website_is_not_built_its_pages_open_as_guides(tmp_path: Path) -> None:
    """Catches links of messages to a guide that all end at the beginning of Help."""
    client = TestClient(Starlette(routes=documentation.routes(tmp_path / "site")), follow_redirects=False)
    assert client.get("/docs/how-to/recruit.html").headers["location"] == "/help?guide=how-to/recruit"


def test_a_click_checks_the_installation(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a check that only a terminal has; it is the command's own."""
    monkeypatch.setattr(helping, "check_installation", lambda: "ok    python: 3.11")
    app = open_help()
    (button,) = [one for one in app.button if one.label == "Check this installation"]
    button.click().run()
    assert "ok    python: 3.11" in [code.value for code in app.code]


@pytest.mark.slow
def test_the_check_is_the_commands(workspace: Path) -> None:
    """Catches a process that does not start, or checks another workspace."""
    said = helping.check_installation()
    assert "ok    python: " in said
    assert str(workspace) in said
