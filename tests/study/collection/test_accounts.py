"""Logins with a password of one's own: links that work once, and what an account may see."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.errors import ForetellError
from study.collection.access.invitations import ACCOUNT_LINK_NS
from study.collection.access.logins import MOST_TRIES
from study.participation.refusals import Refusal
from study.service import Service
from study.store import Store, audit

MakeBundle = Callable[..., Path]
PASSWORD = "correct horse battery"
OTHER = "another long password"
ADA, PROF = "ada@example.org", "prof@example.org"
FILE = """
name = "The University"
issuer = "https://login.example.org"
client_id = "foretell"
secret_variable = "FORETELL_TEST_SECRET"
address = "https://study.example.org"
people = ["ada@example.org"]
administrators = ["Root@Example.org"]
contact = "Grace"
"""


@pytest.fixture
def now() -> list[int]:
    return [10**18]


@pytest.fixture
def service(tmp_path: Path, bundle: MakeBundle, now: list[int]) -> Iterator[Service]:
    with Service(tmp_path / "home", clock=lambda: now[0]) as service:
        service.researcher.open_study(bundle(trials=2, practice=0, side=8), 2)
        service.researcher.set_member("demo", "owner@example.org", "owner")
        service.researcher.set_member("demo", ADA, "viewer")
        yield service


def secret_of(path: str) -> str:
    assert path.startswith("/login?key=")
    return path.partition("=")[2]


def member_secret(service: Service, address: str = ADA) -> str:
    return secret_of(service.act_as("owner@example.org").make_member_link("demo", address))


@pytest.mark.usefixtures("database")
def test_a_link_sets_a_password_once(service: Service, now: list[int]) -> None:
    """Catches a link that works twice, after its time, or without a password; in either database."""
    access, secret = service.access, member_secret(service)
    with pytest.raises(Refusal, match="unknown, used or expired"):
        access.login_by_link(secret)  # no login without a password of one's own
    assert [access.find_invited(secret) for _ in range(2)] == [ADA, ADA]
    with pytest.raises(ForetellError, match="has 5 characters"):
        access.choose_password(secret, "short")
    token = access.choose_password(secret, PASSWORD)
    assert access.find_address(token) == ADA
    with pytest.raises(Refusal, match="used"):
        access.choose_password(secret, OTHER)
    assert access.find_account(access.login(PASSWORD, "a", person="Ada@Example.org")) == access.find_account(token)
    late = secret_of(access.make_account_link("bob@example.org"))
    now[0] += ACCOUNT_LINK_NS
    assert access.find_invited(late) is None
    with pytest.raises(Refusal, match="expired"):
        access.choose_password(late, PASSWORD)
    told = [(row["actor"], row["act"]) for row in service.workspace.store.read(audit.acts)][-5:]
    assert told == [
        ("owner@example.org", "made a login link"), (ADA, "chose a password"), (ADA, "logged in"), (ADA, "logged in"),
        ("researcher", "made a login link"),
    ]  # fmt: skip


def test_a_new_link_ends_the_one_before(service: Service) -> None:
    """Catches a lost link that still sets the password."""
    first, second = member_secret(service), member_secret(service)
    assert (service.access.find_invited(first), service.access.find_invited(second)) == (None, ADA)


def test_a_viewer_who_is_logged_in_is_no_administrator(service: Service) -> None:
    """Catches a login of an account that counts as the shared password's."""
    account = service.access.find_account(service.access.choose_password(member_secret(service), PASSWORD))
    assert account is not None
    assert (account.address, account.is_administrator, account.sees_unassigned) == (ADA, False, False)
    service.access.set_password(OTHER)
    shared = service.access.find_account(service.access.login(OTHER, "a"))
    assert shared is not None
    assert shared.is_administrator
    for password, person in ((OTHER, ADA), (PASSWORD, ""), (PASSWORD, "bob@example.org"), (PASSWORD, "a\x00@b.org")):
        with pytest.raises(Refusal, match="wrong"):
            service.access.login(password, f"192.0.2.{len(person)}", person=person)
    assert service.access.find_account("x") is None
    assert service.access.find_account("") is None


def test_tries_of_a_persons_password_are_limited(service: Service) -> None:
    """Catches a count that only the shared password has."""
    service.access.choose_password(member_secret(service), PASSWORD)
    for _ in range(MOST_TRIES):
        with pytest.raises(Refusal, match="wrong"):
            service.access.login(OTHER, "a", person=ADA)
    with pytest.raises(Refusal, match="Too many tries"):
        service.access.login(PASSWORD, "a", person=ADA)


def test_an_owner_takes_over_nobodys_account(service: Service, bundle: MakeBundle) -> None:
    """Catches a link with which the owner of one study logs in as the owner of another."""
    service.researcher.open_study(bundle(name="theirs", trials=2, practice=0, side=8), 2)
    service.researcher.set_member("theirs", "bob@example.org", "owner")
    owner = service.act_as("owner@example.org")
    owner.set_member("demo", "bob@example.org", "viewer")
    with pytest.raises(Refusal, match="roles in other studies"):
        owner.make_member_link("demo", "bob@example.org")
    with pytest.raises(ForetellError, match="not a member"):
        owner.make_member_link("demo", "new@example.org")
    service.access.choose_password(member_secret(service), PASSWORD)
    with pytest.raises(Refusal, match="chosen a password already"):
        owner.make_member_link("demo", ADA)
    shown = {one.account: one.login for one in owner.list_members("demo")}
    assert shown[ADA] == "own password (link by owner@example.org)"
    assert shown["bob@example.org"] == "none yet"


def test_an_administrator_replaces_and_ends_an_account(service: Service) -> None:
    """Catches a password, a login or a link that outlives its account."""
    token = service.access.choose_password(member_secret(service), PASSWORD)
    link = secret_of(service.access.make_account_link(ADA))
    again = service.access.choose_password(link, OTHER)
    assert (service.access.find_account(token), service.access.find_address(again)) == (None, ADA)
    pending = secret_of(service.access.make_account_link(ADA))
    service.access.remove_account(ADA)
    assert service.access.find_login_state(again) == "out"
    assert service.access.find_invited(pending) is None
    with pytest.raises(Refusal, match="wrong"):
        service.access.login(OTHER, "b", person=ADA)
    with pytest.raises(ForetellError, match="no password and no login link"):
        service.access.remove_account(ADA)


def test_an_account_that_is_taken_before_it_exists_gets_nothing_more(service: Service, bundle: MakeBundle) -> None:
    """Catches an owner who makes an account for a professor, sets its password, and waits until it gets more."""
    service.researcher.open_study(bundle(name="theirs", trials=2, practice=0, side=8), 2)
    service.researcher.set_member("theirs", "bob@example.org", "owner")
    service.act_as("owner@example.org").set_member("demo", PROF, "viewer")
    held = service.access.choose_password(member_secret(service, PROF), PASSWORD)
    with pytest.raises(
        Refusal, match=rf"{PROF} chose their password with a link of owner@example\.org, who may do less"
    ):
        service.act_as("bob@example.org").set_member("theirs", PROF, "owner")
    assert service.act_as(PROF).find_role("theirs") is None

    done = service.researcher.set_member("theirs", PROF, "owner")
    assert f"The password of {PROF} was chosen with a link of an account that may do less, and has ended." in done
    assert service.access.find_account(held) is None
    with pytest.raises(Refusal, match="wrong"):
        service.access.login(PASSWORD, "a", person=PROF)
    rows = service.workspace.store.read(lambda db: audit.acts(db, "ended a password"))
    assert [(row["actor"], PROF in row["detail_json"]) for row in rows] == [("researcher", True)]
    with pytest.raises(Refusal, match="roles in other studies"):
        member_secret(service, PROF)
    token = service.access.choose_password(secret_of(service.access.make_account_link(PROF)), OTHER)
    assert service.researcher.set_member("theirs", PROF, "manager") == ""
    assert service.researcher.set_member("theirs", PROF, "owner") == ""
    assert service.access.find_address(token) == PROF


def test_a_password_counts_for_what_its_inviter_may_do(service: Service) -> None:
    """Catches a password that ends, or a role that is refused, where the inviter could do as much anyway."""
    owner = service.act_as("owner@example.org")
    token = service.access.choose_password(member_secret(service), PASSWORD)
    for role in ("owner", "editor", "manager", "viewer"):
        assert owner.set_member("demo", ADA, role) == ""
        assert service.access.find_address(token) == ADA


def test_a_link_of_somebody_who_may_do_less_by_now_sets_no_password(service: Service, bundle: MakeBundle) -> None:
    """Catches a link that was made before the account got more, or by a former owner."""
    service.researcher.open_study(bundle(name="theirs", trials=2, practice=0, side=8), 2)
    service.researcher.set_member("theirs", "bob@example.org", "owner")
    secret = member_secret(service)
    service.act_as("bob@example.org").set_member("theirs", ADA, "viewer")
    with pytest.raises(Refusal, match="unknown, used or expired"):
        service.access.choose_password(secret, PASSWORD)
    service.researcher.remove_member("theirs", ADA)
    service.researcher.set_member("demo", ADA, "editor")
    secret = member_secret(service)
    service.researcher.set_member("demo", "second@example.org", "owner")
    service.researcher.set_member("demo", "owner@example.org", "manager")
    with pytest.raises(Refusal, match="unknown, used or expired"):
        service.access.choose_password(secret, PASSWORD)


def test_a_login_by_password_is_none_of_a_provider_that_comes_later(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a session of a taken account that becomes an administrator's when the provider is set up."""
    root = "root@example.org"
    service.act_as("owner@example.org").set_member("demo", root, "viewer")
    held = service.access.choose_password(member_secret(service, root), PASSWORD)
    service.act_as("owner@example.org").set_member("demo", "grace@example.org", "viewer")
    pending = member_secret(service, "grace@example.org")
    monkeypatch.setenv("FORETELL_TEST_SECRET", "x")
    names = '["root@example.org", "grace@example.org"]'
    (tmp_path / "home" / "oidc.toml").write_text(FILE.replace('["ada@example.org"]', names))
    with Service(tmp_path / "home", clock=service.workspace.clock) as later:
        assert later.access.find_account(held) is None
        with pytest.raises(Refusal, match="unknown, used or expired"):
            later.access.choose_password(pending, PASSWORD)
        token = later.access.admit({"email": root, "email_verified": True}, "a")
        account = later.access.find_account(token)
        assert account is not None
        assert account.is_administrator
        assert later.access.find_account(held) is None


def test_whom_the_provider_logs_in_has_no_other_password(
    tmp_path: Path, bundle: MakeBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a password, set by a link that an owner made, that logs in as somebody of the university."""
    home = tmp_path / "home"
    with Service(home) as service:
        service.researcher.open_study(bundle(trials=2, practice=0, side=8), 2)
        service.researcher.set_member("demo", ADA, "owner")
        service.access.choose_password(secret_of(service.access.make_account_link(ADA)), PASSWORD)
    monkeypatch.setenv("FORETELL_TEST_SECRET", "x")
    (home / "oidc.toml").write_text(FILE)
    with Service(home) as service:
        with pytest.raises(Refusal, match="logs in with The University"):
            service.access.login(PASSWORD, "a", person=ADA)
        with pytest.raises(ForetellError, match="needs no link"):
            service.access.make_account_link(ADA)
        assert service.researcher.list_members("demo")[0].login == "The University"
        claims = {"email": "root@example.org", "email_verified": True}
        token = service.access.admit(claims, "b")
        root = service.access.find_account(token)
        assert root is not None
        assert (root.is_administrator, root.name) == (True, "root@example.org")
        ada = service.access.find_account(service.access.admit({**claims, "email": ADA}, "b"))
        assert ada is not None
        assert (ada.is_administrator, ada.sees_unassigned) == (False, True)
    (home / "oidc.toml").unlink()
    with Service(home) as service:
        assert service.access.find_account(token) is None


def test_a_database_of_the_last_version_has_no_members_and_keeps_its_logins(tmp_path: Path, bundle: MakeBundle) -> None:
    """Catches a migration that loses a login, or a study that nobody can use afterwards."""
    with Service(tmp_path) as service:
        service.researcher.open_study(bundle(trials=2, practice=0, side=8), 2)
        service.access.set_password(PASSWORD)
        token = service.access.login(PASSWORD, "a")
    for name, version, tables in (
        ("foretell", 6, ["study_member", "key_check", "earlier_response", "response_code", "sitting"]),
        ("identity", 5, ["account"]),
    ):
        with sqlite3.connect(tmp_path / f"{name}.db") as db:
            for table in tables:
                db.execute(f"DROP TABLE {table}")
            if name == "identity":
                for column in ("person", "made_by"):
                    db.execute(f"ALTER TABLE login_link DROP COLUMN {column}")
            assert db.execute("DELETE FROM schema_version WHERE version >= ?", (version,)).rowcount
            assert db.execute("SELECT max(version) FROM schema_version").fetchone() == (version - 1,)
    Store(f"sqlite:///{tmp_path / 'foretell.db'}").close()
    with Service(tmp_path) as service:
        account = service.access.find_account(token)
        assert account is not None
        assert account.is_administrator
        assert service.researcher.list_members("demo") == []
        assert [status.name for status in service.researcher.studies()] == ["demo"]
        assert service.researcher.verify() == []
