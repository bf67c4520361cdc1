"""Who may see the researcher's pages: one password, logins that end, few tries."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from typing import Literal

from argon2 import PasswordHasher
from argon2.exceptions import VerificationError

from core.errors import ForetellError
from study.collection.researcher import Researcher
from study.participation.refusals import Refused
from study.store import Connection, logins

SHORTEST = 12
LOGIN_NS = 12 * 3600 * 10**9
WINDOW_NS = 15 * 60 * 10**9
MOST_TRIES = 5
"""Within `WINDOW_NS`, from one address."""
MOST_TRIES_IN_ALL = 100
"""From all addresses: a password of twelve characters outlasts this for ever."""

Standing = Literal["open", "in", "out"]
"""No password is set; or one is, and the caller is logged in, or is not."""


class Access(Researcher):
    """The researcher's door. Argon2id with the parameters of RFC 9106, section 4 (doi:10.17487/RFC9106)."""

    _hasher = PasswordHasher()
    _one_at_a_time = threading.Lock()
    """A hash takes 64 MiB on purpose: many tries at once must not take the server's memory."""

    def set_password(self, password: str) -> None:
        """Set the password of the researcher's pages and end every login; raises `ForetellError` for a short one."""
        if len(password) < SHORTEST:
            raise ForetellError(f"The password has {len(password)} characters. Choose one of {SHORTEST} or more.")
        hashed = self._hasher.hash(password)
        self._identities.write(lambda db: logins.set_password(db, hashed, self._clock()))
        self.note("set the password", {})

    def standing(self, token: str) -> Standing:
        """Whether there is a password, and whether this token is a login."""

        def work(db: Connection) -> Standing:
            if logins.password_hash(db) is None:
                return "open"
            return "in" if logins.is_open(db, _hashed(token), self._clock()) else "out"

        return self._identities.read(work)

    def login(self, password: str, address: str) -> str:
        """The token of a new login; raises `Refused`: 401 a wrong password, 429 too many tries, 403 none is set.

        The address is kept as a keyed hash, and no longer than tries are counted.
        """
        source = hmac.new(self._key, f"login\0{address}".encode(), "sha256").hexdigest()
        hashed = self._identities.write(lambda db: self._tried(db, source))
        if hashed is None:
            raise Refused(403, "No password is set. Set one on the server: python foretell.py password")
        if not self._fits(hashed, password):
            self.note("refused a login", {})
            raise Refused(401, "This is not the password.")
        token, now = secrets.token_urlsafe(32), self._clock()

        def let_in(db: Connection) -> None:
            logins.forget_tries(db, source)
            logins.open_login(db, _hashed(token), now, now + LOGIN_NS)

        self._identities.write(let_in)
        self.note("logged in", {})
        return token

    def logout(self, token: str) -> None:
        """End a login."""
        if self._identities.write(lambda db: logins.close_login(db, _hashed(token))):
            self.note("logged out", {})

    def _tried(self, db: Connection, source: str) -> str | None:
        now = self._clock()
        since = now - WINDOW_NS
        if logins.tries(db, since, source) >= MOST_TRIES or logins.tries(db, since) >= MOST_TRIES_IN_ALL:
            raise Refused(429, f"Too many tries. Wait {WINDOW_NS // 60 // 10**9} minutes.")
        logins.add_try(db, source, now)
        return logins.password_hash(db)

    def _fits(self, hashed: str, password: str) -> bool:
        with self._one_at_a_time:
            try:
                return self._hasher.verify(hashed, password)
            except VerificationError:
                return False


def _hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
