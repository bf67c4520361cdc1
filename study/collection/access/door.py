"""The researcher's door: each call of a public function is checked against `permissions.DOOR`."""

from __future__ import annotations

import functools
import inspect
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from core.errors import ForetellError
from core.text import read_text
from study.bundle import Bundle
from study.collection.access.accounts import ADMINISTRATOR, Account
from study.collection.access.permissions import DOOR, ROLES, AccessRule, Permission, Role
from study.participation.open_workspace import OpenWorkspace
from study.participation.refusals import Refusal
from study.store import Connection, members, repository

Door = TypeVar("Door", bound=type["ResearcherDoor"])


class ResearcherDoor:
    """What the parts of the door share: the workspace, the account, and the check of its permissions.

    Roles are read at every check, so that a change counts from the next act on.
    """

    def __init__(self, workspace: OpenWorkspace, account: Account = ADMINISTRATOR) -> None:
        self.workspace = workspace
        self.account = account

    @property
    def actor(self) -> str:
        """Author of the acts in the audit trail."""
        return self.account.name

    def may(self, permission: Permission, study: str = "") -> bool:
        """Tell whether the account has a permission in a study, or in the workspace."""
        return self.explain_refusal(permission, study) is None

    def sees(self, study: str) -> bool:
        """Tell whether the account may know that a study exists."""
        return self.may(Permission.FOLLOW, study)

    def explain_refusal(self, permission: Permission, study: str = "") -> str | None:
        """Explain in one sentence why the account lacks a permission; None if it has it."""
        if self.account.is_administrator:
            return None
        return self.workspace.store.read(lambda db: self._find_refusal(db, permission, study))

    def require(self, permission: Permission, study: str = "") -> None:
        """Raise `Refusal` (403) unless the account has a permission."""
        refusal = self.explain_refusal(permission, study)
        if refusal is not None:
            raise Refusal(403, refusal)

    def explain_storage_fault(self) -> str | None:
        """Explain why nothing is stored any more, if so; where the files are, administrators only are told."""
        fault = self.workspace.store.fault
        if fault is None or self.account.is_administrator:
            return fault
        return "Files of this server's database are missing. Tell an administrator."

    def find_role(self, study: str) -> Role | None:
        """Return the account's role in a study; None without one, as for an administrator."""
        address = self.account.address
        return None if address is None else self.workspace.store.read(lambda db: _role(db, study, address))

    def _may_create(self, db: Connection) -> bool:
        """Whether the account may make a study: those who only follow studies, or look after participants, may not."""
        account = self.account
        if account.is_administrator or account.sees_unassigned:
            return True
        roles = {row["role"] for row in members.of_account(db, account.address or "")}
        return bool(roles & {"owner", "editor"})

    def _require_in(self, db: Connection, permission: Permission, study: str) -> None:
        """Check within a transaction: nothing changes between the check and the act."""
        refusal = self._find_refusal(db, permission, study)
        if refusal is not None:
            raise Refusal(403, refusal)

    def _find_refusal(self, db: Connection, permission: Permission, study: str) -> str | None:
        account = self.account
        if account.is_administrator:
            return None
        if permission is Permission.ADMINISTER or not study:
            return "Only an administrator may do this. Ask one."
        if not members.has_members(db, study):
            if account.sees_unassigned and permission is not Permission.MANAGE_MEMBERS:
                return None
            return _describe_stranger(study)
        role = _role(db, study, account.address or "")
        if role is None:
            return _describe_stranger(study)
        if permission in ROLES[role].permissions:
            return None
        owners = ", ".join(row["account"] for row in members.of_study(db, study) if row["role"] == "owner")
        return (
            f"Your role in {study} is {ROLES[role].title.lower()}: you may not {permission}. Ask its owner: {owners}."
        )


def _role(db: Connection, study: str, address: str) -> Role | None:
    own_role = members.role_of(db, study, address)
    return next((role for role in ROLES if role == own_role), None)


def _describe_stranger(study: str) -> str:
    """Refuse alike whether a study exists or not: its name and its owner are not for strangers."""
    return f"You have no role in a study {study!r}. Ask its owner, or an administrator, to add you."


def guard(door: Door) -> Door:
    """Check every call of the class's public functions, also inherited ones, against the table.

    Raises
    ------
    TypeError
        A public function has no entry, or an entry no function.
    """
    public = {name: function for name, function in inspect.getmembers(door, inspect.isfunction) if name[0] != "_"}
    if public.keys() != DOOR.keys():
        raise TypeError(f"DOOR and {door.__name__} differ: {sorted(public.keys() ^ DOOR.keys())}")
    for name, function in public.items():
        if DOOR[name].permission is not None:
            setattr(door, name, _guard_function(function, DOOR[name]))
    return door


def _guard_function(function: Callable[..., Any], rule: AccessRule) -> Callable[..., Any]:
    signature = inspect.signature(function)
    if rule.of and rule.of not in signature.parameters:
        raise TypeError(f"{function.__name__} has no argument {rule.of}.")

    @functools.wraps(function)
    def guarded(self: ResearcherDoor, *args: Any, **kwargs: Any) -> Any:
        if not self.account.is_administrator:
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            permission = _find_permission(rule, bound.arguments)
            for study in find_studies(self.workspace, rule, bound.arguments):
                self.require(permission, study)
        return function(self, *args, **kwargs)

    return guarded


def _find_permission(rule: AccessRule, arguments: Mapping[str, Any]) -> Permission:
    assert rule.permission is not None
    if rule.simulated is not None and "live" not in arguments["modes"]:
        return rule.simulated
    return rule.permission


def find_studies(workspace: OpenWorkspace, rule: AccessRule, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Find the names of the studies that a call is about; "" for the workspace, or for a study that is not known."""
    if rule.of == "study":
        yield arguments["study"]
    elif rule.of == "bundle_folder":
        yield Bundle(Path(arguments["bundle_folder"])).manifest.name
    elif rule.of == "study_hash":
        versions = workspace.store.read(repository.versions)
        yield next((row["name"] for row in versions if row["study_hash"] == arguments["study_hash"]), "")
    elif rule.of == "path":
        yield name_of_file(arguments["path"])
    else:
        yield ""


def name_of_file(path: Path) -> str:
    """Return the study's name that a study file says, or else that of the file."""
    try:
        content = tomllib.loads(read_text(path))
    except (OSError, ValueError, RecursionError, ForetellError):
        return path.stem
    study = content.get("study")
    named = study.get("name") if isinstance(study, dict) else None
    return named if isinstance(named, str) and named else path.stem
