"""One row per participant: how she came through, and what the exclusion rule says. Never who she is."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from study.bundle import Manifest
from study.collection.frames import pseudonym
from study.plan.procedure import procedure_of
from study.store import Connection, repository, responses
from study.store.guests import exclusions
from study.store.rows import Row

COLUMNS = (
    "participant", "mode", "condition", "stage", "check_tries", "catch_missed", "excluded", "reason", "answers",
    "resumes", "anticipations", "slow", "blur_ms", "over_quota", "minutes", "clock_offset_ms", "round_trip_ms",
    "questionnaire", "device", "study_hash",
)  # fmt: skip

MOST_MS = 1e13
"""Of a clock; larger numbers, infinities and NaN are none."""


def participant_frame(db: Connection, sessions: Sequence[Row], manifest_of: Callable[[Row], Manifest]) -> pd.DataFrame:
    """The table of people, in the order of arrival."""
    left_out = {row["session_id"]: row["reason"] for s in {s["study"] for s in sessions} for row in exclusions(db, s)}
    records = [_record(db, session, manifest_of(session), left_out.get(session["session_id"])) for session in sessions]
    return pd.DataFrame.from_records(records, columns=COLUMNS)


def _number(payload: Any, key: str) -> float | None:
    """A number that a page sent, or nothing: a forged one must not decide the type of a column."""
    value = payload.get(key) if isinstance(payload, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < MOST_MS:
        return None
    return float(value)


def _record(db: Connection, session: Row, manifest: Manifest, reason: str | None) -> tuple[Any, ...]:
    session_id = session["session_id"]
    road = procedure_of(manifest).road
    answers = responses.of_session(db, session_id)
    missed = sum(choice != "a" for choice in responses.choices(db, session_id, "catch").values())
    noticed = repository.event_counts(db, session_id)
    filled = {row["item"]: json.loads(row["answer_json"]) for row in repository.questionnaire_of(db, session_id)}
    pinged = repository.last_event(db, session_id, "clock")
    clock = json.loads(pinged["payload_json"]) if pinged else {}
    took = None
    if session["completed_at"] and session["agreed_at"]:
        took = round((session["completed_at"] - session["agreed_at"]) / 60e9, 2)
    return (
        pseudonym(session),
        session["mode"],
        session["condition"],
        session["stage"],
        repository.attempts(db, session_id),
        missed,
        "researcher" if reason is not None else "catch" if missed > road.catch_allowed else "",
        reason or "",
        len(answers),
        session["n_resumes"],
        noticed.get("anticipation", 0),
        noticed.get("slow", 0),
        sum(row["blur_ms"] for row in answers),
        session["over_quota"],
        took,
        _number(clock, "offset_ms"),
        _number(clock, "round_trip_ms"),
        json.dumps(filled, ensure_ascii=False, sort_keys=True),
        session["env_json"] or "{}",
        session["study_hash"],
    )
