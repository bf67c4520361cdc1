"""Members of a study: add, change and remove them, and make the link with which a new one chooses a password."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from core.errors import ForetellError
from study.collection.access import NO_LOGIN, Access
from study.collection.accounts import name_author
from study.collection.door import ResearcherDoor
from study.collection.permissions import ROLES, Permission, Role
from study.collection.provider import parse_address
from study.participation.refusals import Refusal
from study.store import Connection, audit, members


@dataclass(frozen=True)
class Member:
    """A member of a study.

    Attributes
    ----------
    account, role
        E-mail address, and its role in this study.
    added_at, added_by
        When (UTC), and by whom, in words.
    login
        How the member logs in, in words.
    """

    account: str
    role: Role
    added_at: datetime
    added_by: str
    login: str

    @property
    def has_login(self) -> bool:
        """Whether the member can log in already."""
        return self.login != NO_LOGIN


class Members(ResearcherDoor):
    """The part of the researcher's door that is about members."""

    def list_members(self, study: str) -> list[Member]:
        """List the members of a study in the order in which they were added; empty if it is unassigned."""
        rows = self.workspace.store.read(lambda db: members.of_study(db, study))
        logins = Access(self.workspace).describe_logins([row["account"] for row in rows])
        return [
            Member(
                row["account"],
                row["role"],
                datetime.fromtimestamp(row["added_at"] / 1e9, UTC),
                name_author(row["added_by"]),
                logins[row["account"]],
            )
            for row in rows
        ]

    def set_member(self, study: str, address: str, role: Role) -> None:
        """Add a member to a study, or change the role of one.

        Raises
        ------
        ForetellError
            Not an address, no such role, the first member is not an owner, or the last owner would lose that role.
        """
        account = parse_address(address)
        if role not in ROLES:
            raise ForetellError(f"The role {role!r} does not exist. Choose one of: {', '.join(ROLES)}.")

        def work(db: Connection) -> None:
            self._require_in(db, Permission.MANAGE_MEMBERS, study)
            before = members.role_of(db, study, account)
            if before == role:
                return
            if role != "owner":
                if not members.has_members(db, study):
                    raise ForetellError(f"{study} has no members yet. Add its owner first.")
                _keep_an_owner(db, study, account)
            now = self.workspace.clock()
            members.put(db, study, account, role, now, self.actor)
            act = "added a member" if before is None else "changed a member's role"
            audit.append(db, now, self.actor, act, {"study": study, "account": account, "role": role})

        self._require_study(study)
        self.workspace.store.write(work)

    def remove_member(self, study: str, address: str) -> None:
        """Remove a member from a study; their access ends with their next act.

        Raises
        ------
        ForetellError
            No such member, or the last owner.
        """
        account = parse_address(address)

        def work(db: Connection) -> None:
            self._require_in(db, Permission.MANAGE_MEMBERS, study)
            _keep_an_owner(db, study, account)
            if not members.remove(db, study, account):
                raise ForetellError(f"{account} is not a member of {study}. See the list of its members.")
            detail = {"study": study, "account": account}
            audit.append(db, self.workspace.clock(), self.actor, "removed a member", detail)

        self.workspace.store.write(work)

    def make_member_link(self, study: str, address: str) -> str:
        """Make the path of a link with which a member without a login chooses a password, once, within 7 days.

        Raises
        ------
        ForetellError
            Not a member, or they can log in already (only an administrator replaces a forgotten password), or they
            are a member of a study of another owner: whoever makes the link could log in there.
        """
        account = parse_address(address)
        theirs = {row["study"] for row in self.workspace.store.read(lambda db: members.of_account(db, account))}
        if study not in theirs:
            raise ForetellError(f"{account} is not a member of {study}. Add them first.")
        if not all(self.may(Permission.MANAGE_MEMBERS, one) for one in theirs):
            raise Refusal(403, f"{account} has roles in other studies too. Ask an administrator for the link.")
        return Access(self.workspace).make_account_link(account, self.account)

    def _require_study(self, study: str) -> None:
        """Refuse members of a study that is neither a file, a bundle nor a collection: a name that was mistyped."""
        if not self._study_exists(study):
            raise ForetellError(f"There is no study {study!r} in this workspace. Design it first.")

    def _study_exists(self, study: str) -> bool:
        raise NotImplementedError


def _keep_an_owner(db: Connection, study: str, account: str) -> None:
    """Refuse to take the role of the last owner; within a transaction, so two owners cannot remove each other."""
    if members.role_of(db, study, account) == "owner" and members.count_owners(db, study) == 1:
        raise ForetellError(f"{account} is the last owner of {study}. Make another member its owner first.")
