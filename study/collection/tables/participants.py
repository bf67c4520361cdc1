"""One row per participant: their course through the study, and the exclusion rule's result. Never their identity."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import pandas as pd

from study.bundle import Manifest
from study.collection.tables.columns import TEXT, WHOLE, Column, tabulate
from study.collection.tables.frames import pseudonym
from study.collection.tables.funnel import measure_pauses
from study.collection.tables.stored import format_time
from study.participation.messages import SHOWN, list_seen
from study.plan.procedure import procedure_of
from study.store import Connection, repository, responses, sittings
from study.store.guests import exclusions
from study.store.rows import ResponseRow, SessionRow, SittingRow

LEAST_JUMP = 30.0
"""Minutes by which the clocks must have moved apart to be a jump."""
MOST_MS = 1e13
"""Largest plausible clock value; larger numbers, infinities and NaN are discarded."""


@dataclass(frozen=True)
class StoredParticipation:
    """A stored participation, the related rows of other tables, and a researcher's reason to exclude it."""

    db: Connection
    row: SessionRow
    manifest: Manifest
    reason: str | None

    @cached_property
    def responses(self) -> Sequence[ResponseRow]:
        """The responses, practice included."""
        return responses.of_session(self.db, self.row["session_id"])

    @cached_property
    def events(self) -> Mapping[str, int]:
        """The number of events of each kind."""
        return repository.event_counts(self.db, self.row["session_id"])

    @cached_property
    def catch_missed(self) -> int:
        """Number of failed attention checks."""
        return sum(choice != "a" for choice in responses.choices(self.db, self.row["session_id"], "catch").values())

    @property
    def exclusion_reason(self) -> str:
        """The rule or researcher that excludes the participant, if any."""
        if self.reason is not None:
            return "researcher"
        return "catch" if self.catch_missed > procedure_of(self.manifest).pacing.catch_allowed else ""

    @cached_property
    def sittings(self) -> Sequence[SittingRow]:
        """The sittings of a study with several, as far as they were started."""
        rows = sittings.list_sittings(self.db, self.row["session_id"])
        return [row for row in rows if row["started_at"] is not None]

    @property
    def sitting_times(self) -> str | None:
        """When each sitting was started and ended, as JSON; None in a study of one."""
        times = ((row["number"], row["started_at"], row["ended_at"]) for row in self.sittings)
        told = [
            {"sitting": number, "started_at": start and format_time(start), "ended_at": end and format_time(end)}
            for number, start, end in times
        ]
        return json.dumps(told) if told else None

    @property
    def minutes(self) -> float | None:
        """Minutes from the consent to the end, without those between sittings and what the server's clock jumped."""
        if not (self.row["completed_at"] and self.row["agreed_at"]):
            return None
        between = measure_pauses(self.sittings)
        took = round((self.row["completed_at"] - self.row["agreed_at"] - between) / 60e9 - self.clock_jump, 2)
        return float(took) if took >= 0 else None

    @cached_property
    def clock_jump(self) -> float:
        """Minutes by which the server's clock jumped between the first and the last response, ahead or back (< 0).

        A browser's clock runs on meanwhile. Below `LEAST_JUMP` it is none: responses of a browser that was offline
        arrive late. Of several sittings, it is the sum of those within each: the next may be on another device.
        """
        starts = [0, *(row["ends"] for row in self.sittings)]
        parts = [[row for row in self.responses if row["trial_index"] >= start] for start in starts]
        inside = (part[: len(part) - len(rest)] for part, rest in pairwise([*parts, []]))
        return round(sum(map(_measure_jump, inside)), 2)

    @cached_property
    def clock(self) -> Any:
        """The last measurement of the clocks by the page."""
        event = repository.last_event(self.db, self.row["session_id"], "clock")
        return json.loads(event["payload_json"]) if event else {}

    @property
    def questionnaire(self) -> str:
        """The responses to the questionnaire by item, as JSON."""
        rows = repository.questionnaire_of(self.db, self.row["session_id"])
        filled = {row["item"]: json.loads(row["answer_json"]) for row in rows}
        return json.dumps(filled, ensure_ascii=False, sort_keys=True)


def _measure_jump(rows: Sequence[ResponseRow]) -> float:
    """Measure by how many minutes the server's clock and the browser's moved apart from the first to the last row."""
    times = [
        (row["received_at"] / 60e9, (row["time_origin_ms"] + row["event_ms"]) / 60e3)
        for row in rows
        if row["time_origin_ms"] is not None and row["event_ms"] is not None
    ]
    if len(times) < 2:
        return 0.0
    ours, theirs = (last - first for first, last in zip(times[0], times[-1], strict=True))
    apart = ours - theirs
    return apart if LEAST_JUMP <= abs(apart) < MOST_MS else 0.0


def _number(payload: Any, key: str) -> float | None:
    """Return a number that a page sent, or nothing: a forged one must not change the type of a column."""
    value = payload.get(key) if isinstance(payload, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < MOST_MS:
        return None
    return float(value)


COLUMNS: tuple[Column[StoredParticipation], ...] = (
    Column("participant", "pseudonym of the participant, as in the table of responses", lambda one: pseudonym(one.row)),
    Column("mode", "live: a participant; preview: a researcher's preview; sim: a simulated participant"),
    Column("condition", "condition, or order of all conditions, that the participant was allocated to; empty before"),
    Column("stage", "current stage, or how they finished: done, declined, screened, full, expired, withdrawn"),
    Column(
        "check_tries",
        "attempts at the comprehension check",
        lambda one: repository.attempts(one.db, one.row["session_id"]),
    ),
    Column("catch_missed", "attention checks failed", lambda one: one.catch_missed),
    Column(
        "excluded",
        "what excludes the participant: a rule of the study file (catch), or a researcher",
        lambda one: one.exclusion_reason,
        values="catch, researcher",
    ),
    Column("reason", "the researcher's reason for excluding the participant", lambda one: one.reason or ""),
    Column("resumes", "how often the participant resumed the study by its link", lambda one: one.row["n_resumes"]),
    Column(
        "anticipations",
        "key presses within 200 ms of the onset, which do not count as responses",
        lambda one: one.events.get("anticipation", 0),
    ),
    Column("slow", "trials on which the reminder of a slow response appeared", lambda one: one.events.get("slow", 0)),
    Column(
        "blur_ms",
        "how long the page was hidden during trials",
        lambda one: sum(row["blur_ms"] for row in one.responses),
        unit="ms",
    ),
    Column("over_quota", "whether the participant finished after their place was reallocated", values="0, 1"),
    Column(
        "minutes",
        "time from the consent to the end, without that between sittings, by the browser's clock where the server's "
        "jumped; empty where neither tells",
        lambda one: one.minutes,
        unit="min",
    ),
    Column(
        "clock_offset_ms",
        "the server's clock minus the browser's when the page was last opened, by the fastest of 3 requests",
        lambda one: _number(one.clock, "offset_ms"),
        unit="ms",
    ),
    Column(
        "round_trip_ms", "round-trip time of that request", lambda one: _number(one.clock, "round_trip_ms"), unit="ms"
    ),
    Column("questionnaire", "responses to the questionnaire by item, as JSON", lambda one: one.questionnaire),
    Column(
        "device",
        "families of browser and operating system, window, touch, as JSON",
        lambda one: one.row["env_json"] or "{}",
    ),
    Column("study_hash", "SHA-256 of the frozen study the participant took"),
    Column(
        "messages",
        "messages of the researchers that the participant has read",
        lambda one: len(list_seen(one.db, one.row["session_id"])) if SHOWN in one.events else 0,
    ),
    Column("responses", "responses saved, including practice and attention checks", lambda one: len(one.responses)),
    Column(
        "other_keys",
        "trials on which a key other than the two was pressed, so that the page said which they are",
        lambda one: one.events.get("other_key", 0),
    ),
    Column(
        "translated",
        "whether the browser translated the page; class names and codes are never translated",
        lambda one: int("translated" in one.events),
        values="0, 1",
    ),
    Column(
        "clock_jump",
        "how far the server's clock jumped during the responses, against the browser's; 0 below half an hour",
        lambda one: one.clock_jump,
        unit="min",
    ),
    Column(
        "sittings_ended",
        "of a study with several sittings, how many the participant has ended; empty in other studies, as the next",
        lambda one: sum(row["ended_at"] is not None for row in one.sittings) if one.sittings else None,
        dtype=WHOLE,
    ),
    Column(
        "sitting_times",
        "when each sitting was started and ended, by the server's clock in ISO 8601 (UTC), as JSON",
        lambda one: one.sitting_times,
        dtype=TEXT,
    ),
)


def participant_frame(
    db: Connection, sessions: Sequence[SessionRow], manifest_of: Callable[[SessionRow], Manifest]
) -> pd.DataFrame:
    """Tabulate participants, in the order of arrival."""
    left_out = {row["session_id"]: row["reason"] for s in {s["study"] for s in sessions} for row in exclusions(db, s)}
    return tabulate(
        COLUMNS,
        (StoredParticipation(db, row, manifest_of(row), left_out.get(row["session_id"])) for row in sessions),
    )
