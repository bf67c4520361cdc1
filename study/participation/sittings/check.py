"""The sittings in a database, compared with the plan, the responses and the study's times."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise

from study.bundle import Manifest
from study.participation.sittings.course import compute_wait, find_current
from study.participation.sittings.division import find_ends
from study.plan.procedure import procedure_of
from study.store import Connection, sittings
from study.store.rows import PlannedRow, SessionRow


def find_wrong_sittings(
    db: Connection, session: SessionRow, manifest: Manifest, planned: Sequence[PlannedRow]
) -> Iterator[str]:
    """Yield what is wrong with the sittings of a participant, as the ends of sentences about their session."""
    rows, settings = sittings.list_sittings(db, session["session_id"]), procedure_of(manifest).sittings
    if [row["ends"] for row in rows] != find_ends([json.loads(row["screen_json"]) for row in planned]):
        yield " has other sittings than its plan."
        return
    if not rows or settings is None:
        return
    ended = [row["ends"] for row in rows if row["ended_at"] is not None]
    if ended != [row["ends"] for row in rows if row["ends"] <= session["position"]]:
        yield f" is at trial {session['position']} but has ended {len(ended)} sittings."
    for before, after in pairwise(rows):
        if after["started_at"] is not None and before["ended_at"] is None:
            yield f" started sitting {after['number']} before the end of the one before."
        elif after["started_at"] is not None and after["started_at"] < compute_wait(settings, session, before).opens_at:
            yield f" started sitting {after['number']} before it opened."
    is_waiting = find_current(rows)["ended_at"] is not None and find_current(rows) is not rows[-1]
    if (session["stage"] == "between") != is_waiting and session["stage"] != "expired":
        yield f" is at {session['stage']!r} {'between two sittings' if is_waiting else 'in a sitting'}."
