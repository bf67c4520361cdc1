"""Two researchers in two browsers: an owner adds a viewer, who follows the study, cannot unblind, and is removed.

Once with the mouse on a desktop and once by the keyboard alone on a dark phone.
"""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from study.service import Service
from study.store import audit
from tests.browser.hand import Hand, Visitor, open_visit
from tests.browser.test_accessibility import grave
from tests.browser.test_pages import PATIENCE_MS
from tests.conftest import write_bundle
from tests.server import serving

PASSWORD = "correct horse battery"
OWNER, VIEWER = "owner@example.org", "viewer@example.org"
PREVIEW = """async () => (await fetch('/api/v1/begin', {method: 'POST', headers: {'Content-Type': 'application/json'},
  body: JSON.stringify({study: 'demo', preview: true})})).status"""


def choose_password(hand: Hand, link: str, address: str) -> None:
    """Open a link twice, as a mail program does first; the form logs in."""
    page = hand.page
    page.request.get(link)
    page.goto(link)
    expect(page.get_by_text(f"Choose a password for {address}")).to_be_visible()
    assert grave(page) == []
    hand.write(page.get_by_label("Password (at least 12 characters)"), PASSWORD)
    hand.write(page.get_by_label("Repeat the password"), PASSWORD)
    with page.expect_navigation():
        hand.click(page.get_by_role("button", name="Set the password and log in"))


def test_an_owner_adds_a_viewer_who_cannot_unblind(tmp_path: Path, chromium: Browser, visitor: Visitor) -> None:
    """Catches a page, a route or a held session that lets a viewer do more than follow the collection."""
    with Service(tmp_path) as service:
        bundle = write_bundle(tmp_path / "bundles" / "demo-0123456789ab", name="demo", trials=2, practice=0, side=8)
        service.researcher.open_study(bundle, per_condition=2)
        service.researcher.set_member("demo", OWNER, "owner")
        path = service.researcher.make_member_link("demo", OWNER)
    with (
        serving(tmp_path) as server,
        open_visit(chromium, server, visitor, is_known=False) as hand,
        open_visit(chromium, server, visitor, is_known=False) as other,
    ):
        owner, viewer = hand.page, other.page
        choose_password(hand, server.url + path, OWNER)
        owner.goto(f"{server.url}/studies?study=demo&section=Members")
        expect(owner.get_by_text("(you)")).to_be_visible(timeout=PATIENCE_MS)
        hand.write(owner.get_by_label("E-mail address"), "Viewer@Example.org")
        hand.click(owner.get_by_role("button", name="Add", exact=True))
        expect(owner.get_by_text("viewer of demo")).to_be_visible(timeout=PATIENCE_MS)
        hand.see("members")
        hand.click(owner.get_by_role("button", name="Login link"))  # the owner has a login
        link = owner.locator("code", has_text="/login?key=").inner_text(timeout=PATIENCE_MS)

        choose_password(other, link, VIEWER)
        viewer.goto(f"{server.url}/monitor")
        expect(viewer.get_by_text("Your role in demo is viewer: you may not see")).to_be_visible(timeout=PATIENCE_MS)
        other.see("a viewer's monitor")
        for name in ("Pause", "Close", "Unblind and log", "Exclude this participant"):
            expect(viewer.get_by_role("button", name=name)).to_have_count(0)
        assert viewer.evaluate(PREVIEW) == 403
        assert owner.evaluate(PREVIEW) == 201
        again = viewer.request.post(
            f"{server.url}/login/password", form={"key": link.partition("=")[2], "password": PASSWORD}
        )
        assert again.status == 401  # the link is used up

        hand.click(owner.get_by_role("button", name="Remove").nth(1))
        expect(owner.get_by_text("is no longer a member of demo")).to_be_visible(timeout=PATIENCE_MS)
        expect(viewer.get_by_text("You have no role in a study")).to_be_visible(timeout=PATIENCE_MS)  # without a click
        viewer.goto(f"{server.url}/login")
        expect(viewer.get_by_text(f"You are logged in as {VIEWER}.")).to_be_visible()
    with Service(tmp_path) as service:
        told = [(row["actor"], row["act"]) for row in service.workspace.store.read(audit.acts)]
    assert told[3:] == [
        (OWNER, "chose a password"), (OWNER, "logged in"), (OWNER, "added a member"), (OWNER, "made a login link"),
        (VIEWER, "chose a password"), (VIEWER, "logged in"), (OWNER, "removed a member"),
    ]  # fmt: skip


def test_an_administrator_ends_a_login_from_the_list_of_accounts(
    tmp_path: Path, chromium: Browser, visitor: Visitor
) -> None:
    """Catches a list that the page Members does not lead to, and a browser that stays logged in."""
    with Service(tmp_path) as service:
        bundle = write_bundle(tmp_path / "bundles" / "demo-0123456789ab", name="demo", trials=2, practice=0, side=8)
        service.researcher.open_study(bundle, per_condition=2)
        service.researcher.set_member("demo", OWNER, "owner")
        path = service.researcher.make_account_link(OWNER)
    with (
        serving(tmp_path) as server,
        open_visit(chromium, server, visitor) as hand,
        open_visit(chromium, server, visitor, is_known=False) as other,
    ):
        page, owner = hand.page, other.page
        choose_password(other, server.url + path, OWNER)
        owner.goto(f"{server.url}/accounts")
        expect(owner.get_by_text("Only an administrator may do this.")).to_be_visible(timeout=PATIENCE_MS)
        page.goto(f"{server.url}/studies?study=demo&section=Members")
        expect(page.get_by_text("Login: own password")).to_be_visible(timeout=PATIENCE_MS)
        hand.click(page.get_by_role("link", name="All accounts"))
        expect(page.get_by_role("link", name="Owner of demo")).to_be_visible(timeout=PATIENCE_MS)
        hand.see("accounts")
        hand.click(page.get_by_role("button", name="End login"))
        expect(page.get_by_text("can no longer log in with a password")).to_be_visible(timeout=PATIENCE_MS)
        expect(page.get_by_text("Login: none yet")).to_be_visible()
        owner.goto(f"{server.url}/studies")
        expect(owner.get_by_text("On the server's machine you can log in")).to_be_visible(timeout=PATIENCE_MS)
