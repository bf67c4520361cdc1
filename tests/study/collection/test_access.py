"""Who logged in by a provider: in both databases, and what she does under her own name."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from study.service import Service
from study.store import Store, audit, identities

MakeBundle = Callable[..., Path]
ADA = {"email": "ada@example.org", "email_verified": True}
FILE = """
name = "P"
issuer = "https://login.example.org"
client_id = "foretell"
secret_variable = "FORETELL_TEST_SECRET"
address = "https://study.example.org"
people = ["ada@example.org"]
contact = "Grace"
"""


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORETELL_TEST_SECRET", "x")


@pytest.mark.usefixtures("database")
def test_what_somebody_does_stands_under_her_name(tmp_path: Path, bundle: MakeBundle) -> None:
    """Catches an act of a researcher recorded as anybody's, and one of the command line as hers."""
    (tmp_path / "oidc.toml").write_text(FILE)
    with Service(tmp_path) as service:
        ada = service.act_as(str(service.access.find_address(service.access.admit(ADA, "a"))))
        name = ada.open_study(bundle(), 2)
        ada.pause_study(name)
        service.researcher.resume_study(name)
        ada.unblind(name, "to see")
        ada.close_study(name)
        told = [(row["actor"], row["act"]) for row in service.workspace.store.read(audit.acts)]
        assert service.researcher.verify() == []
    mine = ["logged in", "opened", "paused", "unblinded", "closed"]
    assert told == [*[("ada@example.org", act) for act in mine[:3]], ("researcher", "resumed"),
                    *[("ada@example.org", act) for act in mine[3:]]]  # fmt: skip


def test_who_was_logged_in_before_persons_were_kept_still_is(tmp_path: Path) -> None:
    """Catches a migration that ends every login, or takes who has the password for somebody without one."""
    with Service(tmp_path) as service:
        service.access.set_password("correct horse battery")
        token = service.access.login("correct horse battery", "a")
    with sqlite3.connect(tmp_path / "identity.db") as db:
        db.execute("ALTER TABLE login DROP COLUMN person")
        db.execute("DROP TABLE login_link")
        db.execute("DROP TABLE account")
        db.execute("DELETE FROM schema_version WHERE version >= 3")
        assert db.execute("SELECT max(version) FROM schema_version").fetchone() == (2,)
    Store(f"sqlite:///{tmp_path / 'identity.db'}", identities.MIGRATIONS, "identity").close()
    with Service(tmp_path) as service:
        assert (service.access.find_login_state(token), service.access.find_address(token)) == ("in", None)
