"""Accounts with each role in one study."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.errors import ForetellError
from study.collection.access.permissions import ROLES, Role
from study.participation.refusals import Refusal
from study.service import Service

MakeBundle = Callable[..., Path]

ADDRESSES: dict[Role, str] = {role: f"{role}@example.org" for role in ROLES}

STRANGER = "stranger@example.org"


@pytest.fixture
def service(tmp_path: Path, bundle: MakeBundle) -> Service:
    """A study with one member of each role."""
    service = Service(tmp_path / "home")
    service.researcher.open_study(bundle(trials=2, practice=0, side=8), 2)
    for role, address in ADDRESSES.items():
        service.researcher.set_member("demo", address, role)
    return service


def is_refused(act: Callable[..., Any], *arguments: Any) -> bool:
    """Whether the account may not: any other error is one of the act itself, which was let through."""
    try:
        act(*arguments)
    except Refusal as error:
        return error.code == 403
    except ForetellError:
        return False
    return False
