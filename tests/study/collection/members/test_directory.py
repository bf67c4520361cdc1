"""All accounts of a workspace, as an administrator lists and ends them."""

from __future__ import annotations

import pytest

from core.errors import ForetellError
from study.collection.access.accounts import Account
from study.collection.researcher import Researcher
from study.plan.templates import templates
from study.service import Service
from study.store import audit
from tests.study.collection.members.conftest import ADDRESSES

pytestmark = pytest.mark.usefixtures("database")
ADMINISTRATOR = Account("admin@example.org", is_administrator=True)
PASSWORD = "correct horse battery"


def choose_password(service: Service, address: str) -> None:
    path = service.researcher.make_account_link(address)
    service.access.choose_password(path.partition("key=")[2], PASSWORD)


def test_every_account_is_listed_once_with_its_login_and_all_its_roles(service: Service) -> None:
    """Catches an account with a password and no role that nobody sees, and one row for each study."""
    choose_password(service, "guest@example.org")
    service.researcher.copy_study(next(iter(templates())), "fresh")
    service.researcher.set_member("fresh", ADDRESSES["viewer"], "owner")
    listed = {one.address: one for one in service.researcher.list_accounts()}
    assert list(listed) == sorted([*ADDRESSES.values(), "guest@example.org"])
    assert dict(listed[ADDRESSES["viewer"]].roles) == {"demo": "viewer", "fresh": "owner"}
    assert (listed[ADDRESSES["viewer"]].login, listed[ADDRESSES["viewer"]].has_password) == ("none yet", False)
    guest = listed["guest@example.org"]
    assert (guest.roles, guest.login, guest.has_password) == ({}, "own password (link by an administrator)", True)


def test_ending_a_login_keeps_the_roles_and_is_noted_under_the_administrators_name(service: Service) -> None:
    """Catches a removed account that goes on, roles that go with it, and an act that nobody did."""
    owner = ADDRESSES["owner"]
    choose_password(service, owner)
    token = service.access.login(PASSWORD, "a", person=owner)
    assert service.access.find_account(token) is not None
    Researcher(service.workspace, ADMINISTRATOR).remove_account(owner)
    assert service.access.find_account(token) is None
    with pytest.raises(ForetellError, match="wrong"):
        service.access.login(PASSWORD, "a", person=owner)
    assert {one.address: dict(one.roles) for one in service.researcher.list_accounts()}[owner] == {"demo": "owner"}
    (act,) = service.workspace.store.read(lambda db: audit.acts(db, "removed an account"))
    assert act["actor"] == "admin@example.org"
