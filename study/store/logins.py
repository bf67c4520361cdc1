"""The researchers' password, logins and failed tries, stored next to the recruiters' ids, not to the responses."""

from __future__ import annotations

from sqlalchemy import Connection, MetaData, delete, func, insert, select

from study.store.rows import Row, at_most_one, every
from study.store.tables import TEXT, WHOLE, table
from study.store.upsert import insert_or

STATEMENTS = (
    "CREATE TABLE password(id INTEGER PRIMARY KEY CHECK(id = 1), hash TEXT NOT NULL, set_at INTEGER NOT NULL) STRICT",
    "CREATE TABLE login(token_hash TEXT PRIMARY KEY, opened_at INTEGER NOT NULL, expires_at INTEGER NOT NULL) STRICT",
    "CREATE TABLE login_try(try_id INTEGER PRIMARY KEY, source TEXT NOT NULL, at INTEGER NOT NULL) STRICT",
    "CREATE INDEX login_try_at ON login_try(at)",
)
ADD_ADDRESS = ("ALTER TABLE login ADD COLUMN person TEXT",)
"""Column for the e-mail address of a login by a provider; empty for a login by password."""

LINKS = ("CREATE TABLE login_link(token_hash TEXT PRIMARY KEY, expires_at INTEGER NOT NULL) STRICT",)
"""Table of the secrets of login links, as hashes."""

ACCOUNTS = (
    "CREATE TABLE account(address TEXT PRIMARY KEY, hash TEXT NOT NULL, set_at INTEGER NOT NULL, "
    "invited_by TEXT NOT NULL) STRICT",
    "ALTER TABLE login_link ADD COLUMN person TEXT",
    "ALTER TABLE login_link ADD COLUMN made_by TEXT",
)
"""Table of accounts with a password of their own; a link with an address sets that password, once."""

_METADATA = MetaData()
password = table("password", _METADATA, id=WHOLE, hash=TEXT, set_at=WHOLE)
login = table("login", _METADATA, token_hash=TEXT, opened_at=WHOLE, expires_at=WHOLE, person=TEXT)
login_link = table("login_link", _METADATA, token_hash=TEXT, expires_at=WHOLE, person=TEXT, made_by=TEXT)
account = table("account", _METADATA, address=TEXT, hash=TEXT, set_at=WHOLE, invited_by=TEXT)
login_try = table("login_try", _METADATA, try_id=WHOLE, source=TEXT, at=WHOLE)


def set_password(db: Connection, hashed: str, at: int) -> None:
    """Change the shared password; this ends every login and every login link, and no account."""
    row = {"id": 1, "hash": hashed, "set_at": at}
    db.execute(insert_or(db, password).values(row).on_conflict_do_update(index_elements=["id"], set_=row))
    for emptied in (login, login_link, login_try):
        db.execute(delete(emptied))


def password_hash(db: Connection) -> str | None:
    """Return the stored hash of the password, if there is one."""
    return db.execute(select(password.c.hash)).scalar_one_or_none()


def add_try(db: Connection, source: str, at: int) -> None:
    """Count a try before its outcome is known, so that simultaneous tries count too."""
    db.execute(insert(login_try).values(source=source, at=at))


def tries(db: Connection, since: int, source: str) -> int:
    """Count the tries of a source, or of all sources with that prefix, and forget older ones."""
    db.execute(delete(login_try).where(login_try.c.at <= since))
    query = select(func.count()).select_from(login_try)
    return int(db.execute(query.where(login_try.c.source.startswith(source, autoescape=True))).scalar_one())


def forget_tries(db: Connection, source: str) -> None:
    """Forget the failed tries of a source after a login."""
    db.execute(delete(login_try).where(login_try.c.source == source))


def open_login(db: Connection, token_hash: str, email: str | None, now: int, until: int) -> None:
    """Open a login for a time, and forget expired ones."""
    db.execute(delete(login).where(login.c.expires_at <= now))
    db.execute(insert(login).values(token_hash=token_hash, person=email, opened_at=now, expires_at=until))


def add_link(
    db: Connection, token_hash: str, now: int, until: int, person: str | None = None, by: str | None = None
) -> None:
    """Allow logging in by a link for a time, and forget expired links.

    Each account has one link at a time. The command line has one too, with ``person`` None.
    """
    db.execute(delete(login_link).where(login_link.c.expires_at <= now))
    db.execute(delete(login_link).where(login_link.c.person.is_not_distinct_from(person)))
    db.execute(insert(login_link).values(token_hash=token_hash, expires_at=until, person=person, made_by=by))


def list_account_links(db: Connection, now: int) -> list[Row]:
    """List the links with which accounts can choose a password now, without their secrets."""
    mine = (login_link.c.person.is_not(None), login_link.c.expires_at > now)
    return every(db, select(login_link.c.person, login_link.c.expires_at, login_link.c.made_by).where(*mine))


def remove_account_link(db: Connection, address: str, now: int) -> int:
    """Remove an account's link; return how many still worked (0 or 1)."""
    mine = (login_link.c.person == address, login_link.c.expires_at > now)
    return db.execute(delete(login_link).where(*mine)).rowcount


def find_link(db: Connection, token_hash: str, now: int) -> Row | None:
    """Find the login link with this secret, unless it has expired."""
    mine = (login_link.c.token_hash == token_hash, login_link.c.expires_at > now)
    return at_most_one(db, select(login_link).where(*mine))


def use_up_login_link(db: Connection, token_hash: str, now: int) -> int:
    """Remove a login link of the command line; return how many there were (0 or 1)."""
    mine = (login_link.c.token_hash == token_hash, login_link.c.person.is_(None), login_link.c.expires_at > now)
    return db.execute(delete(login_link).where(*mine)).rowcount


def use_up_link(db: Connection, token_hash: str, now: int) -> Row | None:
    """Remove an account's link and return it; None if it is unknown, expired or used before."""
    link = find_link(db, token_hash, now)
    if link is None or link["person"] is None:
        return None
    db.execute(delete(login_link).where(login_link.c.token_hash == token_hash))
    return link


def set_own_password(db: Connection, address: str, hashed: str, at: int, by: str) -> None:
    """Set the password of an account, new or not; this ends its logins."""
    row = {"address": address, "hash": hashed, "set_at": at, "invited_by": by}
    db.execute(insert_or(db, account).values(row).on_conflict_do_update(index_elements=["address"], set_=row))
    db.execute(delete(login).where(login.c.person == address))


def end_password(db: Connection, address: str) -> None:
    """End the password of an account that logs in by a provider, with all logins by it."""
    if db.execute(delete(account).where(account.c.address == address)).rowcount:
        db.execute(delete(login).where(login.c.person == address))


def own_hash(db: Connection, address: str) -> str | None:
    """Return the stored hash of an account's own password, if it has one."""
    return db.execute(select(account.c.hash).where(account.c.address == address)).scalar_one_or_none()


def accounts(db: Connection) -> list[Row]:
    """List the accounts with a password of their own, by address, without the hashes."""
    return every(db, select(account.c.address, account.c.invited_by).order_by(account.c.address))


def remove_account(db: Connection, address: str) -> int:
    """Remove an account's password, links and logins; return how many accounts or links were removed."""
    db.execute(delete(login).where(login.c.person == address))
    links = db.execute(delete(login_link).where(login_link.c.person == address)).rowcount
    return links + db.execute(delete(account).where(account.c.address == address)).rowcount


def find_login(db: Connection, token_hash: str, now: int) -> Row | None:
    """Find the login of this token, unless it is closed or expired."""
    return at_most_one(db, select(login).where(login.c.token_hash == token_hash, login.c.expires_at > now))


def close_login(db: Connection, token_hash: str) -> int:
    """Close a login; return how many were closed (0 or 1)."""
    return db.execute(delete(login).where(login.c.token_hash == token_hash)).rowcount
