"""Members of a study: add, change and remove them, and make the link with which a new one chooses a password."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from core.errors import ForetellError
from study.collection.access.accounts import name_author
from study.collection.access.door import ResearcherDoor
from study.collection.access.invitations import NO_LOGIN
from study.collection.access.logins import Access
from study.collection.access.permissions import ROLES, Permission, Role
from study.collection.access.provider import parse_address
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

    def set_member(self, study: str, address: str, role: Role) -> str:
        """Add a member to a study, or change the role of one; return what else that took, in words.

        A password that was chosen with a link of an account that may do less than the role could be known there: an
        administrator who gives the role ends it, and other accounts may not give it.

        Raises
        ------
        ForetellError
            Not an address, no such role, the first member is not an owner, the last owner would lose that role, or the
            member's password is of a lesser inviter.
        """
        account = parse_address(address)
        if role not in ROLES:
            raise ForetellError(f"The role {role!r} does not exist. Choose one of: {', '.join(ROLES)}.")

        def check(db: Connection) -> str | None:
            self._require_in(db, Permission.MANAGE_MEMBERS, study)
            if role != "owner":
                if not members.has_members(db, study):
                    raise ForetellError(f"{study} has no members yet. Add its owner first.")
                _keep_an_owner(db, study, account)
            return members.role_of(db, study, account)

        def work(db: Connection) -> None:
            before, now = check(db), self.workspace.clock()
            if before == role:
                return
            members.put(db, study, account, role, now, self.actor)
            act = "added a member" if before is None else "changed a member's role"
            audit.append(db, now, self.actor, act, {"study": study, "account": account, "role": role})

        self._require_study(study)
        if self.workspace.store.read(check) == role:
            return ""
        ended = self._end_lesser_logins(study, account, role)  # first: no login of theirs has the role for a moment
        self.workspace.store.write(work)
        if not (self._end_lesser_logins(study, account, role) or ended):
            return ""
        return (
            f"The password of {account} was chosen with a link of an account that may do less, and has ended. "
            "Make a new login link."
        )

    def _end_lesser_logins(self, study: str, account: str, role: Role) -> bool:
        access = Access(self.workspace)
        inviter = access.find_lesser_inviter(account, study, role)
        if inviter is not None and not self.account.is_administrator:
            raise Refusal(
                403,
                f"{account} chose their password with a link of {name_author(inviter)}, who may do less in {study}. "
                "Ask an administrator to add them: they choose a new password then.",
            )
        return access.end_lesser_logins(account, study, role, self.account)

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
            are a member of a study of another owner, where the maker of the link could then log in.
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
