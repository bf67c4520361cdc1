"""A receipt: a participant's proof of what the server stored of theirs, which only this server can make.

``R89-XXXXXXXXXXXXXXXX``: the number of responses, and a keyed hash over the study, the session and the last one. It is
made again from the database when it is checked, and kept nowhere.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass

from core.errors import ForetellError
from study.participation.ending import letters
from study.store import Connection, repository, responses
from study.store.rows import SessionRow

PATTERN = re.compile(r"R(\d{1,6})-[A-Z2-9]{16}")
LENGTH = 16


@dataclass(frozen=True)
class Receipt:
    """Proof that the server stored so many responses of a participant, and the session's stage now."""

    responses: int
    study: str
    study_hash: str
    stage: str


def receipt(db: Connection, key: bytes, session: SessionRow) -> str | None:
    """Make the receipt of all responses that a participant gave until now; None before the first."""
    hashes = responses.hashes_of(db, session["session_id"])
    return _sign_receipt(key, session, hashes) if hashes else None


def verify_receipt(db: Connection, key: bytes, shown: str) -> Receipt:
    """Return what a receipt proves; raise `ForetellError` for one never given, or whose responses were changed."""
    matched = PATTERN.fullmatch(shown)
    for session, hashes in _with_responses(db, int(matched[1]) if matched else 0):
        if hmac.compare_digest(_sign_receipt(key, session, hashes), shown):
            return Receipt(len(hashes), session["study"], session["study_hash"], session["stage"])
    raise ForetellError(
        f"No participation has the receipt {shown}: it was misread, comes from another workspace, or a response was "
        "changed after it was saved. Check the receipt again, and verify the database."
    )


def _with_responses(db: Connection, count: int) -> Iterator[tuple[SessionRow, list[str]]]:
    for session in repository.every_session(db):
        hashes = responses.hashes_of(db, session["session_id"])[:count]
        if count and len(hashes) == count:
            yield session, hashes


def _sign_receipt(key: bytes, session: SessionRow, hashes: list[str]) -> str:
    said = "\0".join(["receipt", session["study_hash"], session["session_id"], str(len(hashes)), hashes[-1]])
    return f"R{len(hashes)}-{letters(hmac.new(key, said.encode(), 'sha256').digest()[:LENGTH])}"
