"""All accounts of a workspace, for administrators: who they are, how they log in, and their roles in every study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from study.collection.access.door import ResearcherDoor
from study.collection.access.logins import Access
from study.collection.access.permissions import Role
from study.store import logins, members


@dataclass(frozen=True)
class AccountEntry:
    """An account of the workspace.

    Attributes
    ----------
    address
        E-mail address.
    login
        How it logs in, in words.
    has_password
        Whether it has chosen a password of its own, which can be ended.
    link_until
        When (UTC) the link expires with which it can choose a password; None without a link that still works.
    roles
        Its role in each study of which it is a member, by name.
    """

    address: str
    login: str
    has_password: bool
    link_until: datetime | None
    roles: Mapping[str, Role]


class AccountDirectory(ResearcherDoor):
    """The part of the researcher's door that is about accounts, whatever the study."""

    def list_accounts(self) -> list[AccountEntry]:
        """List every account that is a member of a study, has a password or a link to choose one, by address."""
        roles: dict[str, dict[str, Role]] = {}
        for row in self.workspace.store.read(members.list_all):
            roles.setdefault(row["account"], {})[row["study"]] = row["role"]
        own = {row["address"] for row in self.workspace.identities.read(logins.accounts)}
        access = Access(self.workspace)
        until = {one: datetime.fromtimestamp(at / 1e9, UTC) for one, at in access.list_account_links().items()}
        addresses = sorted(roles.keys() | own | until.keys())
        described = access.describe_logins(addresses)
        return [AccountEntry(one, described[one], one in own, until.get(one), roles.get(one, {})) for one in addresses]

    def make_account_link(self, address: str) -> str:
        """Make the path of a link with which a researcher chooses a new password, once, within 7 days.

        Raises
        ------
        ForetellError
            Not an address, or the provider logs it in.
        """
        return Access(self.workspace).make_account_link(address, self.account)

    def revoke_account_link(self, address: str) -> None:
        """End the link with which an account can choose a password.

        Raises
        ------
        ForetellError
            No link of it works any more.
        """
        Access(self.workspace).revoke_account_link(address, self.account)

    def remove_account(self, address: str) -> None:
        """End the password, the links and the logins of an account, not its roles.

        Raises
        ------
        ForetellError
            It has none of these.
        """
        Access(self.workspace).remove_account(address, self.account)
