"""Query results as dictionaries: of whole tables with the types of their columns, of other queries plain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from sqlalchemy import Connection
from sqlalchemy.sql.expression import Executable

Row = dict[str, Any]
"""A row of a query with columns of its own."""
Flag = Literal[0, 1]
Mode = Literal["live", "preview", "sim"]
Choice = Literal["a", "b"]
"""Which of the two ends of the options is on the left."""
Side = Literal["left", "right", "1", "2", "3", "4", "5", "6", "7", "8", "9"]
"""A button: of two the side, of a scale the number from the left."""
Stage = Literal[
    "consent", "instructions", "check", "example", "practice", "main", "between", "questionnaire", "debrief",
    "done", "declined", "screened", "full", "expired", "withdrawn",
]  # fmt: skip
"""Which page a participant is on; `study.participation.session` says which follows which."""


class VersionRow(TypedDict):
    """A version of a study that was opened; times in ns since 1970."""

    study_hash: str
    name: str
    folder: str
    opened_at: int
    state: Literal["open", "superseded", "closed"]
    paused: Flag
    access: Literal["open", "list", "personal"]


class SessionRow(TypedDict):
    """A participant; times in ns since 1970. What comes later is None until then."""

    session_id: str
    study: str
    study_hash: str
    participant_id: str
    mode: Mode
    token_hash: str
    stage: Stage
    position: int
    practice: int
    main: int
    condition: str | None
    side_flip: Flag | None
    order_seed: int | None
    n_resumes: int
    started_at: int
    last_seen: int
    agreed_at: int | None
    completed_at: int | None
    completion_code: str | None
    tab_id: str | None
    tab_until: int | None
    over_quota: Flag
    env_json: str | None
    browser_hash: str | None
    code_hash: str | None
    origin: str | None
    link_hash: str | None


class SittingRow(TypedDict):
    """A sitting of a participant: after which trial it ends, and when it was started and ended (ns since 1970)."""

    session_id: str
    number: int
    ends: int
    started_at: int | None
    ended_at: int | None


class SlotRow(TypedDict):
    """A slot of a study, the participant who holds it, and until when (ns since 1970)."""

    slot_id: int
    study_hash: str
    mode: Literal["live", "sim"]
    block: int
    condition: str
    side_flip: Flag
    order_seed: int
    state: Literal["open", "held", "done"]
    session_id: str | None
    held_until: int | None


class PlannedRow(TypedDict):
    """A planned trial of a participant, with its screen."""

    session_id: str
    trial_index: int
    phase: Literal["practice", "main", "catch"]
    item_id: str
    left_is: Choice
    screen_id: int
    shown_sha256: str
    screen_json: str


class ResponseRow(TypedDict):
    """A response; durations and the page's own times in ms, `received_at` in ns since 1970."""

    session_id: str
    trial_index: int
    attempt_id: str
    choice: str
    side: Side
    input: Literal["key", "mouse", "touch", "sim"]
    rt_ms: float
    onset_ms: float | None
    event_ms: float | None
    handler_ms: float | None
    time_origin_ms: float | None
    frame_hz: float | None
    n_exposures: int
    resumed: Flag
    blur_ms: float
    shown_sha256: str
    received_at: int
    seq: int
    prev_hash: str
    row_hash: str
    confidence: float | None
    dropped_frames: int | None
    clock_ms: float | None
    place: str | None
    text: str | None


class EarlierResponseRow(ResponseRow):
    """A response to a trial before its last one; `step` counts from 1."""

    step: int


def every(db: Connection, query: Executable, values: Mapping[str, Any] | None = None) -> list[Row]:
    """Return all rows; `values` are the query's own parameters."""
    cursor = db.execute(query, values)
    names = list(map(str, cursor.keys()))
    return [dict(zip(names, row, strict=True)) for row in cursor]


def at_most_one(db: Connection, query: Executable, values: Mapping[str, Any] | None = None) -> Row | None:
    """Return the only row, or None; more than one is an error."""
    row = db.execute(query, values).mappings().one_or_none()
    return None if row is None else {str(key): value for key, value in row.items()}
