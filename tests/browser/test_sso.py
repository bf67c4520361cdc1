"""Through a provider of another site and back, in a real browser."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from study.service import Service
from study.store import audit
from tests.browser.test_pages import PATIENCE_MS
from tests.conftest import write_bundle
from tests.dashboard.sso.conftest import configured
from tests.oidc import Provider, providing
from tests.server import Server


def test_in_by_the_provider_and_an_act_under_her_name(tmp_path: Path, chromium: Browser) -> None:
    """Catches a cookie that does not survive the way back from another site, and a page that knows nobody's name."""
    with Service(tmp_path) as service:
        service.researcher.open_study(
            write_bundle(tmp_path / "bundle", name="demo", trials=2, practice=0, side=8), per_condition=9
        )
    server = Server(tmp_path)
    with providing(Provider()) as provider, chromium.new_context() as context:
        configured(server, provider)
        server.start()
        try:
            page = context.new_page()
            page.goto(f"{server.url}/monitor")
            page.get_by_role("link", name="Log in with The University").click()
            expect(page).to_have_title("Provider")
            page.get_by_role("link", name="Yes, it is me").click()
            expect(page).to_have_url(f"{server.url}/")
            page.goto(f"{server.url}/monitor")
            page.get_by_role("button", name="Pause").click(timeout=PATIENCE_MS)
            expect(page.get_by_role("button", name="Resume")).to_be_visible(timeout=PATIENCE_MS)
            page.get_by_role("link", name="Log out").click(timeout=PATIENCE_MS)
            expect(page.get_by_text("You are logged in as ada@example.org.")).to_be_visible()
            page.get_by_role("button", name="Log out").click()
            expect(page.get_by_role("link", name="Log in with The University")).to_be_visible()
            page.goto(f"{server.url}/monitor")
            expect(page).to_have_url(f"{server.url}/login")
        finally:
            server.kill()
    with Service(tmp_path) as service:
        told = [(row["actor"], row["act"]) for row in service.workspace.store.read(audit.acts)]
    assert told[1:] == [("ada@example.org", act) for act in ("logged in", "paused", "logged out")]
