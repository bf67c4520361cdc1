"""The tables as queries see them. Types and rules live in the migrations; a test compares the two."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Integer, MetaData, Table, Text
from sqlalchemy.types import REAL, TypeEngine

METADATA = MetaData()


def _table(table: str, **columns: type[TypeEngine[Any]]) -> Table:
    return Table(table, METADATA, *(Column(column, kind) for column, kind in columns.items()))


study_version = _table("study_version", study_hash=Text, name=Text, folder=Text, opened_at=Integer, state=Text)
session = _table(
    "session",
    session_id=Text, study=Text, study_hash=Text, participant_id=Text, mode=Text, token_hash=Text, stage=Text,
    position=Integer, practice=Integer, main=Integer, condition=Text, side_flip=Integer, order_seed=Integer,
    n_resumes=Integer, started_at=Integer, last_seen=Integer, agreed_at=Integer, completed_at=Integer,
    completion_code=Text, tab_id=Text, tab_until=Integer, over_quota=Integer, env_json=Text,
)  # fmt: skip
allocation_slot = _table(
    "allocation_slot",
    slot_id=Integer, study_hash=Text, mode=Text, block=Integer, condition=Text, side_flip=Integer,
    order_seed=Integer, state=Text, session_id=Text, held_until=Integer,
)  # fmt: skip
consent = _table(
    "consent",
    session_id=Text, text_sha256=Text, lang=Text, agreed=Integer, at=Integer, version=Text, boxes_json=Text,
)  # fmt: skip
comprehension = _table(
    "comprehension", session_id=Text, attempt=Integer, answers_json=Text, passed=Integer, received_at=Integer
)
trial_plan = _table(
    "trial_plan",
    session_id=Text, trial_index=Integer, phase=Text, item_id=Text, left_is=Text, screen_json=Text,
    shown_sha256=Text,
)  # fmt: skip
response = _table(
    "response",
    session_id=Text, trial_index=Integer, attempt_id=Text, choice=Text, side=Text, input=Text, rt_ms=REAL,
    onset_ms=REAL, event_ms=REAL, handler_ms=REAL, time_origin_ms=REAL, frame_hz=REAL, n_exposures=Integer,
    resumed=Integer, blur_ms=REAL, shown_sha256=Text, received_at=Integer, seq=Integer, prev_hash=Text,
    row_hash=Text, confidence=REAL, dropped_frames=Integer, clock_ms=REAL,
)  # fmt: skip
response_conflict = _table(
    "response_conflict",
    conflict_id=Integer, session_id=Text, trial_index=Integer, attempt_id=Text, payload_json=Text, reason=Text,
    received_at=Integer,
)  # fmt: skip
event = _table(
    "event",
    event_id=Text, session_id=Text, trial_index=Integer, kind=Text, t_client_ms=REAL, received_at=Integer,
    payload_json=Text,
)  # fmt: skip
questionnaire = _table("questionnaire", session_id=Text, item=Text, answer_json=Text, received_at=Integer)
payment = _table("payment", session_id=Text, minor_units=Integer, currency=Text, formula=Text, batch=Integer)
withdrawal = _table("withdrawal", session_id=Text, requested_at=Integer)
erased_answer = _table("erased_answer", seq=Integer, session_id=Text, prev_hash=Text, row_hash=Text)
audit = _table("audit", seq=Integer, at=Integer, actor=Text, act=Text, detail_json=Text, prev_hash=Text, row_hash=Text)
