"""The ends of the two chains, in a file outside the database: without it, removing the newest rows leaves no trace."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection, Table, select, union_all

from study.store.database.engine import Place, find_file
from study.store.rows import at_most_one
from study.store.tables import CHAIN, audit, earlier_response, response


@dataclass(frozen=True)
class Ends:
    """Number, hash and time (ns) of the last response and of the last audit entry; 0 and "" where there is none."""

    response: int = 0
    response_hash: str = ""
    response_at: int = 0
    act: int = 0
    act_hash: str = ""
    act_at: int = 0

    @property
    def last_response(self) -> str:
        """Describe the last response."""
        return f"number {self.response:,}, {_format_time(self.response_at)}" if self.response else "none"


def ends_of(db: Connection) -> Ends:
    """Read the ends of the chains from the database; the time of an erased last response is unknown (0)."""
    last = [db.execute(select(t.c.seq, t.c.row_hash).order_by(t.c.seq.desc()).limit(1)).first()
            for t in CHAIN]  # fmt: skip
    seq, row_hash = max((tuple(row) for row in last if row is not None), default=(0, ""))
    dated = [select(t.c.received_at).where(t.c.seq == seq) for t in (response, earlier_response)]
    at = db.execute(union_all(*dated)).scalar_one_or_none()
    act = db.execute(select(audit.c.seq, audit.c.row_hash, audit.c.at).order_by(audit.c.seq.desc()).limit(1)).first()
    return Ends(seq, row_hash, at or 0, *(tuple(act) if act else ()))


def find_missing_ends(db: Connection, kept: Ends) -> Iterator[str]:
    """Yield one sentence per chain whose stored end is not in the database."""
    now = ends_of(db)
    for what, number, row_hash, at, newest in (
        ("response", kept.response, kept.response_hash, kept.response_at, now.response),
        ("audit entry", kept.act, kept.act_hash, kept.act_at, now.act),
    ):
        if number and _hash_of(db, what, number) != row_hash:
            lost = f"{number - newest:,} at the end are missing" if newest < number else "others took their place"
            yield (
                f"The {what} number {number:,} ({_format_time(at)}) is not the one that was acknowledged: {lost}. "
                "Restore the database with its -wal file, or the newest backup."
            )


def find_path(home: Path, place: Place) -> Path:
    """Return the file of the ends: next to an SQLite database, under its name; for a server in the workspace."""
    file = find_file(place)
    return home / "foretell.ends" if file is None else file.with_suffix(".ends")


def read(path: Path) -> Ends | None:
    """Read the stored ends; None if there is no readable file."""
    try:
        return Ends(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def keep(path: Path, ends: Ends) -> None:
    """Write the ends to disk atomically; on a full disk the previous file remains."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(json.dumps(asdict(ends)).encode())
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _hash_of(db: Connection, what: str, number: int) -> str | None:
    tables: tuple[Table, ...] = (audit,) if what == "audit entry" else CHAIN
    row = at_most_one(db, union_all(*(select(t.c.row_hash).where(t.c.seq == number) for t in tables)))
    return None if row is None else str(row["row_hash"])


def _format_time(at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1e9, UTC):%Y-%m-%d %H:%M:%S} UTC" if at else "time erased"
