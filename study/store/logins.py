"""The researchers' password, who is logged in, and tries that failed: beside the recruiter's ids, never the answers."""

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
"""The e-mail address of who came by a provider; nothing of who has the password."""

LINKS = ("CREATE TABLE login_link(token_hash TEXT PRIMARY KEY, expires_at INTEGER NOT NULL) STRICT",)
"""Secrets of login links, which the server's terminal shows; kept as hashes."""

_METADATA = MetaData()
password = table("password", _METADATA, id=WHOLE, hash=TEXT, set_at=WHOLE)
login = table("login", _METADATA, token_hash=TEXT, opened_at=WHOLE, expires_at=WHOLE, person=TEXT)
login_link = table("login_link", _METADATA, token_hash=TEXT, expires_at=WHOLE)
login_try = table("login_try", _METADATA, try_id=WHOLE, source=TEXT, at=WHOLE)


def set_password(db: Connection, hashed: str, at: int) -> None:
    """Change the password; every login ends, and every login link."""
    row = {"id": 1, "hash": hashed, "set_at": at}
    db.execute(insert_or(db, password).values(row).on_conflict_do_update(index_elements=["id"], set_=row))
    for emptied in (login, login_link, login_try):
        db.execute(delete(emptied))


def password_hash(db: Connection) -> str | None:
    """What is kept of the password, if there is one."""
    return db.execute(select(password.c.hash)).scalar_one_or_none()


def add_try(db: Connection, source: str, at: int) -> None:
    """A try, before its outcome is known: many at once are counted too."""
    db.execute(insert(login_try).values(source=source, at=at))


def tries(db: Connection, since: int, source: str) -> int:
    """How many tries there were of a source, or of all whose name begins so; older ones are forgotten."""
    db.execute(delete(login_try).where(login_try.c.at <= since))
    query = select(func.count()).select_from(login_try)
    return int(db.execute(query.where(login_try.c.source.startswith(source, autoescape=True))).scalar_one())


def forget_tries(db: Connection, source: str) -> None:
    """Who came in has no failed tries."""
    db.execute(delete(login_try).where(login_try.c.source == source))


def open_login(db: Connection, token_hash: str, person: str | None, now: int, until: int) -> None:
    """Somebody is in, for a time; what has expired is forgotten."""
    db.execute(delete(login).where(login.c.expires_at <= now))
    db.execute(insert(login).values(token_hash=token_hash, person=person, opened_at=now, expires_at=until))


def add_link(db: Connection, token_hash: str, now: int, until: int) -> None:
    """Allow logging in by a link for a time; links whose time is over are forgotten."""
    db.execute(delete(login_link).where(login_link.c.expires_at <= now))
    db.execute(insert(login_link).values(token_hash=token_hash, expires_at=until))


def is_link(db: Connection, token_hash: str, now: int) -> bool:
    """Whether a login link has this secret and its time is not over."""
    mine = (login_link.c.token_hash == token_hash, login_link.c.expires_at > now)
    return db.execute(select(login_link.c.expires_at).where(*mine)).first() is not None


def find_login(db: Connection, token_hash: str, now: int) -> Row | None:
    """The login that was opened by this token, and neither closed nor expired."""
    return at_most_one(db, select(login).where(login.c.token_hash == token_hash, login.c.expires_at > now))


def close_login(db: Connection, token_hash: str) -> int:
    """Log out; how many were logged in by it (0 or 1)."""
    return db.execute(delete(login).where(login.c.token_hash == token_hash)).rowcount
