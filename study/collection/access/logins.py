"""Access to the researcher's pages by login link, password or login provider; logins expire and tries are limited."""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

from argon2 import PasswordHasher
from argon2.exceptions import VerificationError

from core.errors import ForetellError
from study.collection.access.accounts import ADMINISTRATOR, Account
from study.collection.access.invitations import UNKNOWN_LINK, Invitations
from study.collection.access.provider import is_address, plain
from study.collection.access.tokens import LINK_KEY, hash_token
from study.participation.open_workspace import OpenWorkspace
from study.participation.refusals import Refusal
from study.store import Connection, audit, logins
from study.store.rows import Row

SHORTEST = 12
LOGIN_NS = 12 * 3600 * 10**9
LINK_NS = 30 * 24 * 3600 * 10**9
"""Lifetime of a login link: a server's terminal stays open for weeks."""
WINDOW_NS = 15 * 60 * 10**9
MOST_TRIES = 5
"""Tries allowed within `WINDOW_NS` from one address."""
MOST_TRIES_IN_ALL = 100
"""Tries allowed from all addresses together, except by browsers that were logged in before and by providers."""
PASSWORD, DEVICE = "password", "device"

LoginState = Literal["in", "out"]
"""Result of a check of the caller's token: no address and no header opens the researcher's pages."""
Way = Literal["password", "sso", "account"]


class Access(Invitations):
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

    def ways(self) -> tuple[Way, ...]:
        """Ways to log in without a login link; empty without a password and a provider."""
        return self.workspace.identities.read(self._ways)

    def find_login_state(self, token: str) -> LoginState:
        """Find whether this token is a login."""
        return "in" if self.workspace.identities.read(lambda db: self._find_login(db, token)) else "out"

    def login_link(self) -> str:
        """Make the path of a new login link for a user of this machine's command line; it works once, within 30 days.

        It ends the link before it. A new password ends it and every login that such links opened.
        """
        secret, now = secrets.token_urlsafe(32), self.workspace.clock()
        self.workspace.identities.write(lambda db: logins.add_link(db, hash_token(secret), now, now + LINK_NS))
        return f"/login?{LINK_KEY}={secret}"

    def login_by_link(self, secret: str) -> str:
        """Return the token of a new login by a login link's secret; raise `Refusal` (401) for an unknown one."""
        now = self.workspace.clock()
        if not self.workspace.identities.write(lambda db: logins.use_up_login_link(db, hash_token(secret), now)):
            raise Refusal(401, UNKNOWN_LINK)
        return self._log_in(None, None)

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
        self.workspace.identities.write(lambda db: logins.end_password(db, plain(email)))
        return self._log_in(self._source("sso", address), plain(email))

    def refuse(self, why: str) -> None:
        """Record a refused login by the provider, without the name, as it may not be a researcher's."""
        self._note("refused a login", {"why": why})

    def logout(self, token: str) -> None:
        """End a login."""
        email = self.find_address(token)
        if self.workspace.identities.write(lambda db: logins.close_login(db, hash_token(token))):
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
        login = logins.find_login(db, hash_token(token), self.workspace.clock())
        if login is None or login["person"] is None:
            return login
        by_provider = self.provider is not None and self.provider.allows(login["person"])
        has_password = logins.own_hash(db, login["person"]) is not None
        return login if by_provider != has_password else None  # a login by a password is none of the provider's

    def _log_in(self, source: str | None, email: str | None) -> str:
        token, now = secrets.token_urlsafe(32), self.workspace.clock()

        def work(db: Connection) -> None:
            if source is not None:
                logins.forget_tries(db, source)
            logins.open_login(db, hash_token(token), email, now, now + LOGIN_NS)

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
