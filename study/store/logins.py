"""The researchers' password, logins and failed tries, stored next to the recruiters' ids, not to the responses."""

from __future__ import annotations

from sqlalchemy import Connection, MetaData, delete, func, insert, select

from study.store.rows import Row, at_most_one
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

_METADATA = MetaData()
password = table("password", _METADATA, id=WHOLE, hash=TEXT, set_at=WHOLE)
login = table("login", _METADATA, token_hash=TEXT, opened_at=WHOLE, expires_at=WHOLE, person=TEXT)
login_link = table("login_link", _METADATA, token_hash=TEXT, expires_at=WHOLE)
login_try = table("login_try", _METADATA, try_id=WHOLE, source=TEXT, at=WHOLE)


def set_password(db: Connection, hashed: str, at: int) -> None:
    """Change the password; this ends every login and every login link."""
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


def add_link(db: Connection, token_hash: str, now: int, until: int) -> None:
    """Allow logging in by a link for a time, and forget expired links."""
    db.execute(delete(login_link).where(login_link.c.expires_at <= now))
    db.execute(insert(login_link).values(token_hash=token_hash, expires_at=until))


def is_link(db: Connection, token_hash: str, now: int) -> bool:
    """Tell whether a login link has this secret and has not expired."""
    mine = (login_link.c.token_hash == token_hash, login_link.c.expires_at > now)
    return db.execute(select(login_link.c.expires_at).where(*mine)).first() is not None


def find_login(db: Connection, token_hash: str, now: int) -> Row | None:
    """Find the login of this token, unless it is closed or expired."""
    return at_most_one(db, select(login).where(login.c.token_hash == token_hash, login.c.expires_at > now))


def close_login(db: Connection, token_hash: str) -> int:
    """Close a login; return how many were closed (0 or 1)."""
    return db.execute(delete(login).where(login.c.token_hash == token_hash)).rowcount
