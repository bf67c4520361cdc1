"""The pages as members of a study see them: what is hidden, and what is refused even if it is not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.errors import ForetellError
from dashboard.shared import service
from dashboard.shared.collected import study_frames
from study.collection.access.permissions import ROLES
from study.simulate import simulate
from tests.conftest import write_bundle
from tests.study.participants import take_part

PAGES = ("studies", "monitor", "results", "teaching", "power", "design")


def script(page: str) -> None:
    import importlib

    importlib.import_module(f"dashboard.{page}.page").page()


@pytest.fixture
def collected(workspace: Path) -> Path:
    folder = write_bundle(workspace / "bundles" / "demo-0123456789ab", name="demo", trials=6, practice=0)
    opened = service.get_service()
    opened.researcher.open_study(folder, 2)
    for role in ROLES:
        opened.researcher.set_member("demo", f"{role}@example.org", role)
    simulate(opened, "demo", 4, {"guesser": 1.0}, 0)
    return workspace


def log_in(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Let the pages find the login of this account, as they find a browser's."""
    monkeypatch.setattr(service, "get_acting_researcher", lambda: service.get_service().act_as(address))


def run(page: str, **query: str) -> AppTest:
    app = AppTest.from_function(script, args=(page,))
    for name, value in query.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


def labels(app: AppTest) -> set[str]:
    return {button.label for button in app.button}


ACTIONS = {
    "Close the study",
    "Pause",
    "Unblind and log",
    "Exclude this participant",
    "Withdraw and erase",
    "Collect and log",
    "Send and log",
}
"""All buttons of the Monitor that act."""


@pytest.mark.parametrize(
    ("role", "shown", "hidden"),
    [
        (
            "owner",
            ACTIONS,
            set(),
        ),
        (
            "editor",
            {"Close the study", "Pause"},
            {"Unblind and log", "Exclude this participant", "Withdraw and erase", "Collect and log", "Send and log"},
        ),
        (
            "manager",
            {"Exclude this participant", "Withdraw and erase", "Collect and log", "Send and log"},
            {"Close the study", "Pause", "Unblind and log"},
        ),
        (
            "viewer",
            set(),
            ACTIONS,
        ),
    ],
)
def test_the_monitor_has_the_buttons_of_the_role(
    collected: Path, monkeypatch: pytest.MonkeyPatch, role: str, shown: set[str], hidden: set[str]
) -> None:
    """Catches a button that the role may not press, and one that is missing."""
    log_in(monkeypatch, f"{role}@example.org")
    app = run("monitor")
    assert labels(app) >= shown
    assert labels(app) & hidden == set()
    said = [caption.value for caption in app.caption if "you may not" in caption.value]
    assert bool(said) == (role != "owner")


def find_choices(app: AppTest, key: str) -> list[Any]:
    return [box.options for box in app.selectbox if box.key == key]


def test_results_shows_responses_as_far_as_the_role_goes(collected: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches responses that an owner has loaded, and that another's page then takes from the cache."""
    token = service.get_service().participant.begin("demo", participant="p")
    take_part(service.get_service(), token)
    seen = {}
    for role in ROLES:
        log_in(monkeypatch, f"{role}@example.org")
        frames = study_frames()
        seen[role] = set(frames["demo"]()["mode"]) if "demo" in frames else set()
    assert seen == {"owner": {"live", "sim"}, "editor": {"sim"}, "viewer": set(), "manager": set(), "rater": set()}
    assert "demo" not in find_choices(run("results"), "results_source")[0]


def test_the_sections_of_a_study_are_those_of_the_role(collected: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a section with trials or responses for an account that may only follow the collection."""
    for role, sections in (
        ("owner", ["Collection", "Trials", "Simulate", "Export", "Members"]),
        ("viewer", ["Collection", "Members"]),
    ):
        log_in(monkeypatch, f"{role}@example.org")
        (control,) = [one for one in run("studies", study="demo").get("button_group") if one.proto.label == "Section"]
        assert [option.content for option in control.proto.options] == sections


def test_a_stranger_finds_no_study_on_any_page(collected: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a page that lists the studies of others."""
    log_in(monkeypatch, "stranger@example.org")
    for page in PAGES:
        app = run(page)
        assert "demo" not in [option for box in app.selectbox for option in box.options], page
        assert not [table for table in app.table if "demo" in table.value.to_string()], page
        assert not [html for html in app.get("html") if "study=demo" in html.proto.body], page


def accounts_script() -> None:
    from dashboard.studies import accounts

    accounts.page()


def test_administrators_see_and_end_every_login_and_owners_do_not(
    collected: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches addresses of other studies that an owner reads, and a button that ends another account."""
    access, link = service.get_service().access, service.get_service().researcher.make_account_link
    for address in ("editor@example.org", "guest@example.org"):
        access.choose_password(link(address).partition("key=")[2], "correct horse battery")
    app = AppTest.from_function(accounts_script).run()
    shown = [text.value.strip("*`") for text in app.markdown if "@" in text.value]
    assert shown == [f"{name}@example.org" for name in ("editor", "guest", "manager", "owner", "rater", "viewer")]
    links = {one.proto.label: one.proto.query_string for one in app.get("page_link")}
    assert links["Editor of demo"] == "study=demo&section=Members"
    app.button(key="account_link_viewer@example.org").click().run()
    assert "/login?key=" in app.code[0].value
    assert not [one for one in app.button if one.key == "account_end_viewer@example.org"]  # no login to end
    app.button(key="account_end_guest@example.org").click().run()
    assert app.success[0].value == "`guest@example.org` can no longer log in with a password."
    assert "guest@example.org" not in {one.address for one in service.get_service().researcher.list_accounts()}
    app.text_input(key="account_address").set_value("new@example.org")
    app.button(key="account_add").click().run()
    assert "/login?key=" in app.code[0].value
    log_in(monkeypatch, "owner@example.org")
    app.run()
    assert "Only an administrator may do this." in app.error[0].value
    assert not [text.value for text in app.markdown if "@" in text.value]


def test_members_are_added_changed_and_removed_on_the_page(collected: Path) -> None:
    """Catches controls that do something else than they say, and an error that stops the page."""
    app = AppTest.from_function(script, args=("studies",))
    app.query_params["section"], app.query_params["study"] = "Members", "demo"
    app.run()
    assert app.selectbox(key="member_role_demo").value == "viewer"  # what may do least
    odd = "ada_[x](y)@example.org"
    app.text_input(key="member_address_demo").set_value(odd.title())
    app.button(key="member_add_demo").click().run()
    assert not app.exception
    assert "viewer of demo" in app.success[0].value
    assert any(r"\[x\](y)" in text.value for text in app.markdown)
    app.selectbox(key=f"member_role_demo_{odd}").set_value("editor").run()
    assert roles()[odd] == "editor"
    app.button(key=f"member_link_demo_{odd}").click().run()
    assert "/login?key=" in app.code[0].value
    app.run()
    assert not app.code  # shown once
    owner = "owner@example.org"
    app.text_input(key="member_address_demo").set_value("Owner@example.org")
    app.button(key="member_add_demo").click().run()
    assert app.error[0].value == "`owner@example.org` is a member already. Change the role in their row."
    app.button(key=f"member_remove_demo_{owner}").click().run()
    assert "last owner" in app.error[0].value
    app.selectbox(key=f"member_role_demo_{owner}").set_value("viewer").run()
    assert "last owner" in app.error[0].value
    assert app.selectbox(key=f"member_role_demo_{owner}").value == "owner"  # as it is stored
    app.button(key=f"member_remove_demo_{odd}").click().run()
    assert odd not in roles()
    assert len(roles()) == len(ROLES)


def test_the_second_member_is_no_owner_unless_one_is_chosen(workspace: Path) -> None:
    """Catches the role of the last member, here the owner's, that stays chosen for the next one."""
    service.get_service().researcher.open_study(
        write_bundle(workspace / "bundles" / "demo-0123456789ab", name="demo"), 2
    )
    app = AppTest.from_function(script, args=("studies",))
    app.query_params["section"], app.query_params["study"] = "Members", "demo"
    app.run()
    for address in ("ada@example.org", "grace@example.org"):
        app.text_input(key="member_address_demo").set_value(address)
        app.button(key="member_add_demo").click().run()
    assert roles() == {"ada@example.org": "owner", "grace@example.org": "viewer"}


def roles() -> dict[str, str]:
    return {one.account: one.role for one in service.get_service().researcher.list_members("demo")}


def test_an_account_without_a_password_is_listed_with_its_link(collected: Path) -> None:
    """Catches a new account that appears nowhere, and a link that can be neither renewed nor revoked."""
    access = service.get_service().access
    app = AppTest.from_function(accounts_script).run()
    app.text_input(key="account_address").set_value("Bob@example.org")
    app.button(key="account_add").click().run()
    first = app.code[0].value.partition("key=")[2]
    (said,) = [caption.value for caption in app.caption if caption.value.startswith("Invited")]
    assert re.fullmatch(r"Invited, no password yet · login link until 20\d\d-\d\d-\d\d \d\d:\d\d UTC", said)
    app.button(key="account_link_bob@example.org").click().run()
    second = app.code[0].value.partition("key=")[2]
    assert (access.find_invited(first), access.find_invited(second)) == (None, "bob@example.org")
    app.button(key="account_revoke_bob@example.org").click().run()
    assert access.find_invited(second) is None
    assert app.success[0].value == "The login link of `bob@example.org` no longer works."  # no link to a mail program
    assert "bob@example.org" not in {one.address for one in service.get_service().researcher.list_accounts()}


def test_revoking_a_link_ends_no_password(collected: Path) -> None:
    """Catches an account that is ended by the button for a link which its owner has used meanwhile."""
    opened = service.get_service()
    opened.access.choose_password(opened.access.make_account_link("bob@example.org").partition("=")[2], "x" * 12)
    with pytest.raises(ForetellError, match="was used, has expired or was revoked"):
        opened.researcher.revoke_account_link("bob@example.org")
    assert opened.access.login("x" * 12, "a", person="bob@example.org")
