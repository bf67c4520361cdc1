"""Progress of a collection: participants, places, throughput, quality, incidents. Blinded: no outcome, no condition
of a participant, nothing that an analyst may not see before the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pandas as pd

from study.bundle import Manifest
from study.collection.tables.frames import pseudonym
from study.collection.tables.funnel import list_minutes, measure_pauses, tabulate_funnel, tabulate_page_times
from study.collection.tables.sittings import tabulate_sittings
from study.conditions import CONDITIONS
from study.participation.session import UNDER_WAY
from study.plan.orders import read_order
from study.plan.procedure import procedure_of
from study.store import Connection, guests, history, quota, repository, sittings, timemark, watch
from study.store.rows import Row, SessionRow
from study.workspace.disk import LEAST_FREE, free_bytes

Where = Literal["waiting", "responding", "between", "silent", "finished", "ended"]

FASTEST_MS = 300.0
MOST_FAST = 0.1
"""Share of responses faster than `FASTEST_MS` above which a participant is flagged."""
MOST_AWAY_MS = 30_000.0
LONGEST_RUN = 12
"""Run of one side that is flagged: a fair coin has one this long with probability 1/50 in a hundred responses."""
SILENT_NS = 10 * 60 * 10**9
"""Time without a sign of activity after which a participant has probably left."""
STEP_NS = 5 * 60 * 10**9
CROWD, CROWD_NS = 30, 10 * 60 * 10**9
"""Number of starts from one address in this time that is flagged: a class, or a script."""
NOTICED = ("storage_failed", "offline", "unknown_parameters", "translated")


@dataclass(frozen=True)
class Monitor:
    """A summary of a collection.

    Attributes
    ----------
    participants
        participant, where, stage, trial, of, minutes (since the last activity), flags (in words); newest first.
    places
        condition, places, open, held, done.
    throughput
        ``time`` (UTC), ``responses``; every step from the first to the last.
    funnel
        step, participants, share of the step before (`study.collection.tables.funnel`).
    minutes
        From consent to completion, of the participants who completed.
    page_times
        part, participants, minutes by quantile (`study.collection.tables.funnel`).
    sittings
        sitting, started, ended, waiting, missed: participants, of a study with several sittings
        (`study.collection.tables.sittings`); empty of others.
    incidents
        what, count: conflicting responses, pages that could not store anything, lost connections.
    free_bytes, database_bytes
        Free space on the workspace's disk, and the size of the database.
    clock_jump_ns
        Size of a clock jump of more than an hour, else 0; until it is confirmed, nothing expires or is erased.
    """

    participants: pd.DataFrame
    places: pd.DataFrame
    throughput: pd.DataFrame
    funnel: pd.DataFrame
    minutes: pd.Series[float]
    page_times: pd.DataFrame
    sittings: pd.DataFrame
    incidents: pd.DataFrame
    free_bytes: int
    database_bytes: int
    clock_jump_ns: int = 0

    def count(self, *where: Where) -> int:
        """Number of participants."""
        return int(self.participants["where"].isin(where).sum())

    @property
    def disk_is_low(self) -> bool:
        """Whether so little space is free that no new participant is admitted."""
        return self.free_bytes < LEAST_FREE


def build_monitor(
    db: Connection, study: str, manifest_of: Callable[[SessionRow], Manifest], home: Path, now: int
) -> Monitor:
    """Summarise the real participants of a study."""
    responses, missed = watch.summarise_responses(db, study, FASTEST_MS), watch.count_missed_catches(db, study)
    rows, crowds, excluded = [], _find_crowds(db, study), {row["session_id"] for row in guests.exclusions(db, study)}
    sessions = repository.sessions(db, study, ["live"])
    by_session = sittings.list_by_session(db, study)
    pauses = {session_id: measure_pauses(own) for session_id, own in by_session.items()}
    for session in reversed(sessions):
        session_id, pacing = session["session_id"], procedure_of(manifest_of(session)).pacing
        allowed = missed.get(session_id, 0) - pacing.catch_allowed
        said = [*(["excluded"] if session_id in excluded else []), *describe_flags(responses.get(session_id), allowed)]
        if session_id in crowds:
            said.append(f"one of {crowds[session_id]} from one address within {CROWD_NS // 60 // 10**9} minutes")
        rows.append(_describe_participant(session, said, now))
    columns = ["participant", "where", "stage", "trial", "of", "minutes", "flags"]
    return Monitor(
        pd.DataFrame(rows, columns=columns),
        _tabulate_places(db, study),
        _tabulate_throughput(watch.count_responses_by_time(db, study, STEP_NS)),
        tabulate_funnel(sessions),
        list_minutes(sessions, pauses),
        tabulate_page_times(sessions, history.list_milestones(db, study), pauses),
        tabulate_sittings(sessions, by_session, manifest_of, now),
        pd.DataFrame(watch.incidents(db, study, NOTICED).items(), columns=["what", "count"]),
        free_bytes(home),
        sum(path.stat().st_size for path in home.glob("*.db*")),
        timemark.measure_clock_jump(db, now),
    )


def describe_flags(responses: Mapping[str, float] | None, missed: int) -> list[str]:
    """Describe unusual features of a participant's responses, without their correctness."""
    flags = [f"attention checks failed beyond the allowed number: {missed}"] if missed > 0 else []
    if responses is None or not responses["responses"]:
        return flags
    if responses["fast"] / responses["responses"] > MOST_FAST:
        flags.append(f"{responses['fast'] / responses['responses']:.0%} faster than {FASTEST_MS:.0f} ms")
    if responses["blur_ms"] > MOST_AWAY_MS:
        flags.append(f"{responses['blur_ms'] / 1000:.0f} s with the page hidden")
    if responses["run"] >= LONGEST_RUN:
        flags.append(f"{responses['run']:.0f} responses in a row on the same side")
    return flags


def _find_crowds(db: Connection, study: str) -> dict[str, int]:
    """Find participants who started among unusually many from one address, and how many those were."""
    by_origin: dict[str, list[Row]] = {}
    for row in guests.origins(db, study):
        by_origin.setdefault(row["origin"], []).append(row)
    crowds: dict[str, int] = {}
    for rows in by_origin.values():
        first = 0
        for last, row in enumerate(rows):
            while row["started_at"] - rows[first]["started_at"] > CROWD_NS:
                first += 1
            count = last - first + 1
            if count >= CROWD:
                crowds |= {
                    one["session_id"]: max(count, crowds.get(one["session_id"], 0)) for one in rows[first : last + 1]
                }
    return crowds


def _describe_participant(session: SessionRow, flagged: list[str], now: int) -> tuple[object, ...]:
    total = session["practice"] + session["main"]
    minutes = round((now - session["last_seen"]) / 60e9, 1)
    said = "; ".join(flagged)
    return pseudonym(session), _find_where(session, now), session["stage"], session["position"], total, minutes, said


def _find_where(session: SessionRow, now: int) -> Where:
    if session["stage"] == "done":
        return "finished"
    if session["stage"] not in (*UNDER_WAY, "consent"):
        return "ended"
    if session["stage"] == "between":
        return "between"
    if now - session["last_seen"] > SILENT_NS:
        return "silent"
    return "responding" if session["stage"] in ("practice", "main") else "waiting"


def _tabulate_places(db: Connection, study: str) -> pd.DataFrame:
    """Tabulate places of all versions in the order of `CONDITIONS`: the order of allocation must not show."""
    mine = {version["study_hash"] for version in repository.versions(db) if version["name"] == study}
    counts = pd.DataFrame(
        [row for row in quota.slot_counts(db) if row["study_hash"] in mine and row["mode"] == "live"],
        columns=["condition", "state", "n"],
    )
    table = counts.pivot_table(index="condition", columns="state", values="n", aggfunc="sum", fill_value=0)
    known = {name: i for i, name in enumerate(CONDITIONS)}
    table = table.reindex(
        sorted(table.index, key=lambda place: [known.get(name, len(known)) for name in read_order(place)])
    )
    table = table.reindex(columns=["open", "held", "done"], fill_value=0).astype(int)
    table.insert(0, "places", table.sum(axis=1))
    return table.rename_axis(columns=None).reset_index()


def _tabulate_throughput(rows: list[Row]) -> pd.DataFrame:
    counts = {int(row["step"]): int(row["n"]) for row in rows}
    steps = range(min(counts), max(counts) + 1) if counts else range(0)
    times = [datetime.fromtimestamp(step * STEP_NS / 1e9, UTC) for step in steps]
    return pd.DataFrame({"time": times, "responses": [counts.get(step, 0) for step in steps]})
