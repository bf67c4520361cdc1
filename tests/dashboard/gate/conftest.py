"""A server outside of this machine's own address, with a password or a login link."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from study.service import Service
from tests.conftest import write_bundle
from tests.server import Server, serving

PASSWORD = "correct horse battery"

ELSEWHERE = {"Host": "study.example.org"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("gate")
    with Service(home) as service:
        service.researcher.open_study(
            write_bundle(home / "bundle", name="demo", trials=2, practice=0, side=8), per_condition=9
        )
    with serving(home) as running:
        yield running


@pytest.fixture(scope="module")
def password_row(server: Server) -> tuple[Any, ...]:
    """The row of the password, which takes long to hash: that is its purpose."""
    with Service(server.home) as service:
        service.access.set_password(PASSWORD)
    with sqlite3.connect(server.home / "identity.db") as db:
        (row,) = db.execute("SELECT * FROM password")
    forget_logins(server)
    return tuple(row)


@pytest.fixture
def guarded(server: Server, password_row: tuple[Any, ...]) -> Iterator[Server]:
    """With a password; without one again afterwards."""
    with sqlite3.connect(server.home / "identity.db") as db:
        db.execute(f"INSERT INTO password VALUES ({', '.join('?' for _ in password_row)})", password_row)
    yield server
    forget_logins(server)


def forget_logins(server: Server) -> None:
    """No password and no login, as at the beginning."""
    with sqlite3.connect(server.home / "identity.db") as db:
        for table in ("password", "login", "login_link", "login_try"):
            db.execute(f"DELETE FROM {table}")


def login(server: Server, password: str = PASSWORD, **headers: str) -> httpx.Response:
    return httpx.post(f"{server.url}/login", data={"password": password}, headers={**ELSEWHERE, **headers})
