"""Access to the researcher's pages by login link, password or login provider; logins expire and tries are limited."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from argon2 import PasswordHasher
from argon2.exceptions import VerificationError

from core.errors import ForetellError
from study.collection.accounts import ADMINISTRATOR, Account, name_author
from study.collection.provider import Provider, is_address, parse_address, plain, provider_of
from study.participation.open_workspace import OpenWorkspace
from study.participation.refusals import Refusal
from study.store import Connection, audit, logins
from study.store.rows import Row

SHORTEST = 12
LOGIN_NS = 12 * 3600 * 10**9
LINK_NS = 30 * 24 * 3600 * 10**9
"""Lifetime of a login link: a server's terminal stays open for weeks."""
ACCOUNT_LINK_NS = 7 * 24 * 3600 * 10**9
"""Lifetime of a link with which a researcher chooses a password."""
WINDOW_NS = 15 * 60 * 10**9
LINK_KEY = "key"
MOST_TRIES = 5
"""Tries allowed within `WINDOW_NS` from one address."""
MOST_TRIES_IN_ALL = 100
"""Tries allowed from all addresses together, except by browsers that were logged in before and by providers."""
PASSWORD, DEVICE = "password", "device"
NO_LOGIN = "none yet"
_UNKNOWN_LINK = "This login link is unknown, used or expired. Ask for another one."

LoginState = Literal["in", "out"]
"""Result of a check of the caller's token: no address and no header opens the researcher's pages."""
Way = Literal["password", "sso", "account"]


class Access:
    """Logins to the researcher's pages.

    Argon2id with the parameters of RFC 9106, section 4 (doi:10.17487/RFC9106).
    """

    _hasher = PasswordHasher()
    _one_at_a_time = threading.Lock()
    """A hash takes 64 MiB on purpose, so many simultaneous tries must not exhaust the server's memory."""

    def __init__(self, workspace: OpenWorkspace) -> None:
        self.workspace = workspace

    @cached_property
    def _dummy(self) -> str:
        """The hash that is checked for an unknown address: the time then tells nobody which accounts exist."""
        return self._hash(secrets.token_hex())

    def set_password(self, password: str) -> None:
        """Set the password of the researcher's pages and end every login; raise `ForetellError` for a short one."""
        hashed = self._hash(password)
        self.workspace.identities.write(lambda db: logins.set_password(db, hashed, self.workspace.clock()))
        self._note("set the password", {})

    @cached_property
    def provider(self) -> Provider | None:
        """The login provider, as configured when this service started; raises `ForetellError` for a wrong file."""
        return provider_of(self.workspace.home)

    def ways(self) -> tuple[Way, ...]:
        """Ways to log in without a login link; empty without a password and a provider."""
        return self.workspace.identities.read(self._ways)

    def find_login_state(self, token: str) -> LoginState:
        """Find whether this token is a login."""
        return "in" if self.workspace.identities.read(lambda db: self._find_login(db, token)) else "out"

    def login_link(self) -> str:
        """Make the path of a new login link for a user of this machine's command line; it works for 30 days.

        A new password ends it and every login that it opened.
        """
        secret, now = secrets.token_urlsafe(32), self.workspace.clock()
        self.workspace.identities.write(lambda db: logins.add_link(db, _hash_token(secret), now, now + LINK_NS))
        return f"/login?{LINK_KEY}={secret}"

    def login_by_link(self, secret: str) -> str:
        """Return the token of a new login by a login link's secret; raise `Refusal` (401) for an unknown one."""
        link = self.workspace.identities.read(
            lambda db: logins.find_link(db, _hash_token(secret), self.workspace.clock())
        )
        if link is None or link["person"] is not None:
            raise Refusal(401, _UNKNOWN_LINK)
        return self._log_in(None, None)

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
            logins.add_link(db, _hash_token(secret), now, now + ACCOUNT_LINK_NS, address, by.name)

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
            lambda db: logins.find_link(db, _hash_token(secret), self.workspace.clock())
        )
        return None if link is None else link["person"]

    def choose_password(self, secret: str, password: str) -> str:
        """Set the password of a link's account, use the link up, and return the token of a new login.

        Raises
        ------
        ForetellError
            The password is short (the link still works); `Refusal` (401) for an unknown, expired or used link.
        """
        if self.find_invited(secret) is None:
            raise Refusal(401, _UNKNOWN_LINK)
        hashed = self._hash(password)

        def work(db: Connection) -> str:
            now = self.workspace.clock()
            link = logins.use_up_link(db, _hash_token(secret), now)
            if link is None:
                raise Refusal(401, _UNKNOWN_LINK)
            logins.set_own_password(db, link["person"], hashed, now, link["made_by"])
            return str(link["person"])

        address = self.workspace.identities.write(work)
        self._note("chose a password", {}, address)
        return self._log_in(None, address)

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

    def find_account(self, token: str) -> Account | None:
        """Find the account that is logged in by this token; None without a login."""
        login = self.workspace.identities.read(lambda db: self._find_login(db, token))
        return None if login is None else self.account_of(login["person"])

    def account_of(self, address: str | None) -> Account:
        """Return the account of an address; an administrator without one."""
        if address is None:
            return ADMINISTRATOR
        provider = self.provider
        by_provider = provider is not None and provider.allows(address)
        is_administrator = provider is not None and plain(address) in provider.administrators
        return Account(plain(address), is_administrator, sees_unassigned=by_provider)

    def find_address(self, token: str) -> str | None:
        """Return the e-mail address of the researcher logged in by this token; None for a password or no login."""
        login = self.workspace.identities.read(lambda db: self._find_login(db, token))
        return login["person"] if login else None

    def login(self, password: str, address: str, device: str = "", person: str = "") -> str:
        """Return the token of a new login; raise `Refusal`: 401 wrong password, 429 too many tries, 403 none is set.

        With the e-mail address of a `person` the password is their own, else the shared one.

        The network address is stored as a keyed hash while tries are counted. A browser that was logged in before
        (its `device`, see `new_device`) has its own count, which strangers cannot use up.
        """
        known = self._is_device(device)
        source = self._source(DEVICE, device) if known else self._source(PASSWORD, address)

        def begin_login(db: Connection) -> str | None:
            self._limit_tries(db, source, limited_in_all=not known)
            return logins.own_hash(db, plain(person)) or dummy if person else logins.password_hash(db)

        person = person if not person or is_address(person) else "unknown"
        dummy = self._dummy if person else None
        if person and self.provider is not None and self.provider.allows(person):
            raise Refusal(403, f"This address logs in with {self.provider.name}.")
        hashed = self.workspace.identities.write(begin_login)
        if hashed is None:
            raise Refusal(403, "No password is set. Set one on the server: python foretell.py password")
        if not self._fits(hashed, password):
            self._note("refused a login", {})
            raise Refusal(401, "The address or the password is wrong." if person else "The password is wrong.")
        return self._log_in(source, plain(person) if person else None)

    def new_device(self) -> str:
        """Make the mark of a browser that was logged in: it opens nothing, but strangers' tries do not count for it."""
        nonce = secrets.token_urlsafe(16)
        return f"{nonce}.{self._device_mark(nonce)}"

    def _is_device(self, device: str) -> bool:
        nonce, _, mark = device.partition(".")
        return hmac.compare_digest(self._device_mark(nonce).encode(), mark.encode())

    def _device_mark(self, nonce: str) -> str:
        return hmac.new(self.workspace.key, f"device\0{nonce}".encode(), "sha256").hexdigest()

    def count_try(self, address: str) -> None:
        """Count a try to log in by the provider; raise `Refusal` (429) after too many.

        Passwords are counted separately: a failing provider must not block logins by password.
        """
        source = self._source("sso", address)
        self.workspace.identities.write(lambda db: self._limit_tries(db, source, limited_in_all=False))

    def admit(self, claims: Mapping[str, Any], address: str) -> str:
        """Return the token of a new login for a provider's checked claims; raise `Refusal` (403).

        The provider must vouch for the e-mail address (``email_verified``), and it must be on the list.
        """
        provider = self.provider
        if provider is None:
            raise Refusal(403, "No login provider is set up.")
        email = claims.get("email")
        if claims.get("email_verified") is not True or not isinstance(email, str) or not is_address(email):
            self.refuse("no verified e-mail address")
            raise Refusal(403, f"{provider.name} has verified no e-mail address of yours. Ask {provider.contact}.")
        if not provider.allows(email):
            self.refuse("not on the list")
            raise Refusal(403, f"{email} may not see these pages. Ask {provider.contact} for access.")
        return self._log_in(self._source("sso", address), plain(email))

    def refuse(self, why: str) -> None:
        """Record a refused login by the provider, without the name, as it may not be a researcher's."""
        self._note("refused a login", {"why": why})

    def logout(self, token: str) -> None:
        """End a login."""
        email = self.find_address(token)
        if self.workspace.identities.write(lambda db: logins.close_login(db, _hash_token(token))):
            self._note("logged out", {}, email)

    def _ways(self, db: Connection) -> tuple[Way, ...]:
        ways: dict[Way, bool] = {
            "password": logins.password_hash(db) is not None,
            "sso": self.provider is not None,
            "account": bool(logins.accounts(db)),
        }
        return tuple(way for way, is_open in ways.items() if is_open)

    def _find_login(self, db: Connection, token: str) -> Row | None:
        """Find the login of this token; removal from the provider's list, or of the account, ends a login."""
        login = logins.find_login(db, _hash_token(token), self.workspace.clock())
        if login is None or login["person"] is None:
            return login
        by_provider = self.provider is not None and self.provider.allows(login["person"])
        return login if by_provider or logins.own_hash(db, login["person"]) is not None else None

    def _log_in(self, source: str | None, email: str | None) -> str:
        token, now = secrets.token_urlsafe(32), self.workspace.clock()

        def work(db: Connection) -> None:
            if source is not None:
                logins.forget_tries(db, source)
            logins.open_login(db, _hash_token(token), email, now, now + LOGIN_NS)

        self.workspace.identities.write(work)
        self._note("logged in", {}, email)
        return token

    def _note(self, act: str, detail: Mapping[str, Any], email: str | None = None) -> None:
        self.workspace.note(email or audit.RESEARCHER, act, detail)

    def _source(self, way: str, address: str) -> str:
        hashed = hmac.new(self.workspace.key, f"{way}\0{address}".encode(), "sha256").hexdigest()
        return f"{way}:{hashed}"

    def _limit_tries(self, db: Connection, source: str, *, limited_in_all: bool) -> None:
        now = self.workspace.clock()
        since = now - WINDOW_NS
        in_all = logins.tries(db, since, f"{PASSWORD}:") if limited_in_all else 0
        if logins.tries(db, since, source) >= MOST_TRIES or in_all >= MOST_TRIES_IN_ALL:
            raise Refusal(429, f"Too many tries. Wait {WINDOW_NS // 60 // 10**9} minutes.")
        logins.add_try(db, source, now)

    def _hash(self, password: str) -> str:
        if len(password) < SHORTEST:
            raise ForetellError(f"The password has {len(password)} characters. Choose one of {SHORTEST} or more.")
        with self._one_at_a_time:
            return self._hasher.hash(password)

    def _fits(self, hashed: str, password: str) -> bool:
        with self._one_at_a_time:
            try:
                return self._hasher.verify(hashed, password)
            except VerificationError:
                return False


def _hash_token(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
