"""Links with which researchers choose passwords of their own, and who may have made the link of which account.

Whoever makes a link could use it themselves. A password therefore counts for no more than its inviter could do: an
account that gets more needs a new link, made by one that may do as much.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from core.errors import ForetellError
from study.collection.access.accounts import ADMINISTRATOR, Account, name_author
from study.collection.access.permissions import ROLES, Role
from study.collection.access.provider import Provider, parse_address, provider_of
from study.collection.access.tokens import LINK_KEY, hash_token
from study.participation.open_workspace import OpenWorkspace
from study.participation.refusals import Refusal
from study.store import Connection, audit, logins, members

ACCOUNT_LINK_NS = 7 * 24 * 3600 * 10**9
"""Lifetime of a link with which a researcher chooses a password."""
NO_LOGIN = "none yet"
UNKNOWN_LINK = "This login link is unknown, used or expired. Ask for another one."


class Invitations:
    """The part of the logins that is about accounts with a password of their own."""

    workspace: OpenWorkspace

    @cached_property
    def provider(self) -> Provider | None:
        """The login provider, as configured when this service started; raises `ForetellError` for a wrong file."""
        return provider_of(self.workspace.home)

    def make_account_link(self, address: str, by: Account = ADMINISTRATOR) -> str:
        """Make the path of a link with which a researcher chooses a password for this address, once, within 7 days.

        Raises
        ------
        ForetellError
            The provider logs this address in; or it has a password, which only an administrator may replace.
        """
        address, secret, now = parse_address(address), secrets.token_urlsafe(32), self.workspace.clock()
        if self.provider is not None and self.provider.allows(address):
            raise ForetellError(f"{address} logs in with {self.provider.name} and needs no link.")

        def work(db: Connection) -> None:
            if not by.is_administrator and logins.own_hash(db, address) is not None:
                raise Refusal(403, f"{address} has chosen a password already. An administrator can make a new link.")
            logins.add_link(db, hash_token(secret), now, now + ACCOUNT_LINK_NS, address, by.name)

        self.workspace.identities.write(work)
        self._note("made a login link", {"account": address}, by.address)
        return f"/login?{LINK_KEY}={secret}"

    def list_account_links(self) -> dict[str, int]:
        """List when the link of each account expires (nanoseconds since 1970), of the links that still work."""
        rows = self.workspace.identities.read(lambda db: logins.list_account_links(db, self.workspace.clock()))
        return {row["person"]: row["expires_at"] for row in rows}

    def revoke_account_link(self, address: str, by: Account = ADMINISTRATOR) -> None:
        """End the link of an account, and not its password; raise `ForetellError` where no link works any more."""
        address, now = parse_address(address), self.workspace.clock()
        if not self.workspace.identities.write(lambda db: logins.remove_account_link(db, address, now)):
            raise ForetellError(f"{address} has no login link: it was used, has expired or was revoked.")
        self._note("revoked a login link", {"account": address}, by.address)

    def find_invited(self, secret: str) -> str | None:
        """Find whose password a link sets; None for any other link. Asking does not use it up."""
        link = self.workspace.identities.read(
            lambda db: logins.find_link(db, hash_token(secret), self.workspace.clock())
        )
        return None if link is None else link["person"]

    def choose_password(self, secret: str, password: str) -> str:
        """Set the password of a link's account, use the link up, and return the token of a new login.

        Raises
        ------
        ForetellError
            The password is short (the link still works); `Refusal` (401) for an unknown, expired or used link.
        """
        if not self._is_usable(secret):
            raise Refusal(401, UNKNOWN_LINK)
        hashed = self._hash(password)

        def work(db: Connection) -> str:
            now = self.workspace.clock()
            link = logins.use_up_link(db, hash_token(secret), now)
            if link is None:
                raise Refusal(401, UNKNOWN_LINK)
            logins.set_own_password(db, link["person"], hashed, now, link["made_by"])
            return str(link["person"])

        address = self.workspace.identities.write(work)
        self._note("chose a password", {}, address)
        return self._log_in(None, address)

    def _is_usable(self, secret: str) -> bool:
        """Tell whether a link sets a password: its maker may do what the account may, and no provider logs it in."""
        now = self.workspace.clock()
        link = self.workspace.identities.read(lambda db: logins.find_link(db, hash_token(secret), now))
        if link is None or link["person"] is None:
            return False
        if self.provider is not None and self.provider.allows(link["person"]):
            return False
        return self.workspace.store.read(lambda db: self._covers_all(db, link["made_by"], link["person"]))

    def _covers_all(self, db: Connection, inviter: str, address: str) -> bool:
        return all(self.covers(db, inviter, row["study"], row["role"]) for row in members.of_account(db, address))

    def covers(self, db: Connection, inviter: str, study: str, role: Role) -> bool:
        """Tell whether an inviter may do whatever a role in a study may do."""
        if inviter == audit.RESEARCHER or self.account_of(inviter).is_administrator:
            return True
        own = members.role_of(db, study, inviter)
        return any(own == name and rights.permissions >= ROLES[role].permissions for name, rights in ROLES.items())

    def find_lesser_inviter(self, address: str, study: str, role: Role) -> str | None:
        """Find by whose link an account chose its password, if they may do less than this role; None otherwise."""
        rows = self.workspace.identities.read(logins.accounts)
        inviter = next((row["invited_by"] for row in rows if row["address"] == address), None)
        if inviter is None or self.workspace.store.read(lambda db: self.covers(db, inviter, study, role)):
            return None
        return str(inviter)

    def end_lesser_logins(self, address: str, study: str, role: Role, by: Account) -> bool:
        """End the password, logins and links that an account has of an inviter who may do less than this role.

        Return whether a password has ended.
        """
        now = self.workspace.clock()
        links = self.workspace.identities.read(lambda db: logins.list_account_links(db, now))
        maker = next((row["made_by"] for row in links if row["person"] == address), None)
        if maker is not None and not self.workspace.store.read(lambda db: self.covers(db, maker, study, role)):
            self.workspace.identities.write(lambda db: logins.remove_account_link(db, address, now))
        if self.find_lesser_inviter(address, study, role) is None:
            return False
        self.workspace.identities.write(lambda db: logins.remove_account(db, address))
        self._note("ended a password", {"account": address, "study": study}, by.address)
        return True

    def remove_account(self, address: str, by: Account = ADMINISTRATOR) -> None:
        """End an account: its password, links and logins, not its roles; raise `ForetellError` if there is none."""
        address = parse_address(address)
        if not self.workspace.identities.write(lambda db: logins.remove_account(db, address)):
            raise ForetellError(f"{address} has no password and no login link here.")
        self._note("removed an account", {"account": address}, by.address)

    def describe_logins(self, addresses: Sequence[str]) -> dict[str, str]:
        """Describe how each address logs in."""
        rows = self.workspace.identities.read(logins.accounts)
        invited_by = {row["address"]: row["invited_by"] for row in rows}

        def describe(address: str) -> str:
            if self.provider is not None and self.provider.allows(address):
                return self.provider.name
            return f"own password (link by {name_author(invited_by[address])})" if address in invited_by else NO_LOGIN

        return {address: describe(address) for address in addresses}

    def account_of(self, address: str | None) -> Account:
        """Return the account of an address; an administrator without one."""
        raise NotImplementedError

    def _hash(self, password: str) -> str:
        raise NotImplementedError

    def _log_in(self, source: str | None, email: str | None) -> str:
        raise NotImplementedError

    def _note(self, act: str, detail: Mapping[str, Any], email: str | None = None) -> None:
        raise NotImplementedError
