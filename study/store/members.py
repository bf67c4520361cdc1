"""Rows of the members of studies and their roles."""

from __future__ import annotations

from sqlalchemy import Connection, and_, delete, func, select

from study.store.rows import Row, every
from study.store.tables import study_member
from study.store.upsert import insert_or


def role_of(db: Connection, study: str, account: str) -> str | None:
    """Return the role of an account in a study, or None."""
    mine = and_(study_member.c.study == study, study_member.c.account == account)
    return db.execute(select(study_member.c.role).where(mine)).scalar_one_or_none()


def of_study(db: Connection, study: str) -> list[Row]:
    """List the members of a study in the order in which they were added."""
    order = (study_member.c.added_at, study_member.c.account)
    return every(db, select(study_member).where(study_member.c.study == study).order_by(*order))


def of_account(db: Connection, account: str) -> list[Row]:
    """List the memberships of an account."""
    return every(db, select(study_member).where(study_member.c.account == account))


def list_all(db: Connection) -> list[Row]:
    """List the memberships of every account, by study."""
    return every(db, select(study_member).order_by(study_member.c.study))


def has_members(db: Connection, study: str) -> bool:
    """Tell whether a study has any member."""
    return db.execute(select(study_member.c.study).where(study_member.c.study == study).limit(1)).first() is not None


def count_owners(db: Connection, study: str) -> int:
    """Count the owners of a study."""
    mine = and_(study_member.c.study == study, study_member.c.role == "owner")
    return int(db.execute(select(func.count()).where(mine)).scalar_one())


def put(db: Connection, study: str, account: str, role: str, at: int, by: str) -> None:
    """Add a member, or change the role of one."""
    row = {"study": study, "account": account, "role": role, "added_at": at, "added_by": by}
    again = insert_or(db, study_member).values(row)
    db.execute(again.on_conflict_do_update(index_elements=["study", "account"], set_={"role": role}))


def remove(db: Connection, study: str, account: str) -> int:
    """Remove a member; return how many were removed (0 or 1)."""
    mine = and_(study_member.c.study == study, study_member.c.account == account)
    return db.execute(delete(study_member).where(mine)).rowcount
