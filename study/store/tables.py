"""The tables as queries use them. Types and constraints are in the migrations; a test compares the two."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Double, Integer, MetaData, Table, Text
from sqlalchemy.types import REAL, TypeEngine

METADATA = MetaData()
TEXT = Text()
WHOLE: TypeEngine[Any] = BigInteger().with_variant(Integer(), "sqlite")
"""Type of nanoseconds since 1970, which need 64 bits; SQLite's INTEGER has them."""
NUMBER: TypeEngine[Any] = Double().with_variant(REAL(), "sqlite")
"""Type of measured values, which must be restored to the last bit or the chain breaks; SQLite's REAL is a double."""


def table(called: str, metadata: MetaData = METADATA, /, **columns: TypeEngine[Any]) -> Table:
    """Make a table from its columns."""
    return Table(called, metadata, *(Column(column, kind) for column, kind in columns.items()))


study_version = table(
    "study_version", study_hash=TEXT, name=TEXT, folder=TEXT, opened_at=WHOLE, state=TEXT, paused=WHOLE, access=TEXT
)
session = table(
    "session",
    session_id=TEXT, study=TEXT, study_hash=TEXT, participant_id=TEXT, mode=TEXT, token_hash=TEXT, stage=TEXT,
    position=WHOLE, practice=WHOLE, main=WHOLE, condition=TEXT, side_flip=WHOLE, order_seed=WHOLE,
    n_resumes=WHOLE, started_at=WHOLE, last_seen=WHOLE, agreed_at=WHOLE, completed_at=WHOLE,
    completion_code=TEXT, tab_id=TEXT, tab_until=WHOLE, over_quota=WHOLE, env_json=TEXT,
    browser_hash=TEXT, code_hash=TEXT, origin=TEXT, link_hash=TEXT,
)  # fmt: skip
allocation_slot = table(
    "allocation_slot",
    slot_id=WHOLE, study_hash=TEXT, mode=TEXT, block=WHOLE, condition=TEXT, side_flip=WHOLE,
    order_seed=WHOLE, state=TEXT, session_id=TEXT, held_until=WHOLE,
)  # fmt: skip
consent = table(
    "consent",
    session_id=TEXT, text_sha256=TEXT, lang=TEXT, agreed=WHOLE, at=WHOLE, version=TEXT, boxes_json=TEXT,
)  # fmt: skip
comprehension = table(
    "comprehension", session_id=TEXT, attempt=WHOLE, answers_json=TEXT, passed=WHOLE, received_at=WHOLE
)
sitting = table("sitting", session_id=TEXT, number=WHOLE, ends=WHOLE, started_at=WHOLE, ended_at=WHOLE)
screen = table("screen", screen_id=WHOLE, screen_json=TEXT)
trial_plan = table(
    "trial_plan",
    session_id=TEXT, trial_index=WHOLE, phase=TEXT, item_id=TEXT, left_is=TEXT, screen_id=WHOLE,
    shown_sha256=TEXT,
)  # fmt: skip
_RESPONSE: dict[str, TypeEngine[Any]] = {
    "session_id": TEXT, "trial_index": WHOLE, "attempt_id": TEXT, "choice": TEXT, "side": TEXT, "input": TEXT,
    "rt_ms": NUMBER, "onset_ms": NUMBER, "event_ms": NUMBER, "handler_ms": NUMBER, "time_origin_ms": NUMBER,
    "frame_hz": NUMBER, "n_exposures": WHOLE, "resumed": WHOLE, "blur_ms": NUMBER, "shown_sha256": TEXT,
    "received_at": WHOLE, "seq": WHOLE, "prev_hash": TEXT, "row_hash": TEXT, "confidence": NUMBER,
    "dropped_frames": WHOLE, "clock_ms": NUMBER, "place": TEXT, "text": TEXT,
}  # fmt: skip
response = table("response", **_RESPONSE)
earlier_response = table("earlier_response", step=WHOLE, **_RESPONSE)
response_conflict = table(
    "response_conflict",
    conflict_id=WHOLE, session_id=TEXT, trial_index=WHOLE, attempt_id=TEXT, payload_json=TEXT, reason=TEXT,
    received_at=WHOLE,
)  # fmt: skip
page_event = table(
    "page_event",
    event_id=TEXT, session_id=TEXT, trial_index=WHOLE, kind=TEXT, t_client_ms=NUMBER, received_at=WHOLE,
    payload_json=TEXT,
)  # fmt: skip
questionnaire = table("questionnaire", session_id=TEXT, item=TEXT, answer_json=TEXT, received_at=WHOLE)
payment = table("payment", session_id=TEXT, minor_units=WHOLE, currency=TEXT, formula=TEXT, batch=WHOLE)
withdrawal = table("withdrawal", session_id=TEXT, requested_at=WHOLE)
erased_response = table("erased_answer", seq=WHOLE, session_id=TEXT, prev_hash=TEXT, row_hash=TEXT)
CHAIN = (response, earlier_response, erased_response)
"""The tables whose rows, in the order of ``seq``, are one chain of hashes."""
audit = table("audit", seq=WHOLE, at=WHOLE, actor=TEXT, act=TEXT, detail_json=TEXT, prev_hash=TEXT, row_hash=TEXT)
invitation = table("invitation", study=TEXT, participant_id=TEXT)
response_code = table(
    "response_code", session_id=TEXT, trial_index=WHOLE, rater=TEXT, revision=WHOLE, code=TEXT, at=WHOLE
)
exclusion = table("exclusion", session_id=TEXT, reason=TEXT, at=WHOLE)
study_member = table("study_member", study=TEXT, account=TEXT, role=TEXT, added_at=WHOLE, added_by=TEXT)
key_check = table("key_check", id=WHOLE, value=TEXT)
time_mark = table("time_mark", id=WHOLE, reached=WHOLE, since=WHOLE, latest=WHOLE)
