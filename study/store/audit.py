"""The audit trail: acts on the data, append-only and chained by hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, insert, select

from study.bundle import canonical
from study.store.responses import GENESIS
from study.store.rows import Row, every
from study.store.tables import audit

RESEARCHER = "researcher"


def append(db: Connection, at: int, actor: str, act: str, detail: Mapping[str, Any]) -> None:
    """Append an act; `detail` must not identify a participant.

    The actor is ``participant``, ``server``, ``researcher``, or the e-mail address with which a researcher logged in.
    """
    last = db.execute(select(audit.c.seq, audit.c.row_hash).order_by(audit.c.seq.desc()).limit(1)).first()
    seq, prev_hash = (last.seq + 1, last.row_hash) if last else (1, GENESIS)
    text = canonical(detail).decode()
    row = {"seq": seq, "at": at, "actor": actor, "act": act, "detail_json": text, "prev_hash": prev_hash}
    db.execute(insert(audit).values({**row, "row_hash": _hash(row)}))


def acts(db: Connection, act: str | None = None) -> list[Row]:
    """List every act, or those of one kind, the oldest first."""
    kind = [] if act is None else [audit.c.act == act]
    return every(db, select(audit).where(*kind).order_by(audit.c.seq))


def find_broken_entries(db: Connection) -> Iterator[str]:
    """Yield one sentence per act that was changed, removed or inserted after it was written."""
    expected_seq, prev_hash = 1, GENESIS
    for row in acts(db):
        if row["seq"] != expected_seq or row["prev_hash"] != prev_hash or _hash(row) != row["row_hash"]:
            yield f"Audit entry {row['seq']} ({row['act']}) was changed, or one before it was removed or inserted."
        expected_seq, prev_hash = row["seq"] + 1, row["row_hash"]


def _hash(row: Mapping[str, Any]) -> str:
    content = {key: value for key, value in row.items() if key != "row_hash"}
    return hashlib.sha256(canonical(content)).hexdigest()
