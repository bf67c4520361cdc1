"""Where a participant is among their sittings, and when the next one opens and closes, by the server's clock.

A sitting opens by the clock as it is: a server that was off must not keep participants waiting. What ends a
participation, the closing, and the end of a sitting from which both count are by the trusted time
(`study.store.timemark`). Previews and simulated participants do not wait.
"""

from __future__ import annotations

import base64
import hmac
from dataclasses import dataclass
from typing import Any

from study.bundle import Manifest
from study.plan.procedure import Procedure, Sittings, procedure_of
from study.plan.texts import fill_placeholders
from study.store import Connection, sittings, timemark
from study.store.rows import SessionRow, SittingRow

HOUR_NS, MINUTE_NS, MS_NS = 3600 * 10**9, 60 * 10**9, 10**6
BACK = "back-"
"""Before the secret of a personal link, after the # of its address (``dashboard/runner/runner.js``)."""
LINK_BYTES = 24
"""Bytes of a personal link: 192 bits, which nobody guesses."""


@dataclass(frozen=True)
class Stretch:
    """The trials of a sitting in a participant's plan: the index of the first, and their number."""

    first: int
    total: int


@dataclass(frozen=True)
class Wait:
    """A participant between two sittings: the number of the next one, and when it opens and closes (ns since 1970)."""

    number: int
    opens_at: int
    closes_at: int


def make_link(key: bytes, session_id: str) -> str:
    """Make the secret of a participant's personal link, which only this workspace can: it is stored as a hash alone."""
    digest = hmac.new(key, f"sitting\0{session_id}".encode(), "sha256").digest()[:LINK_BYTES]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def list_ends(db: Connection, session: SessionRow, manifest: Manifest) -> tuple[int, ...]:
    """List the index after the last trial of each sitting; none in a study of one."""
    return tuple(row["ends"] for row in _list(db, session, manifest))


def find_stretch(db: Connection, session: SessionRow, manifest: Manifest) -> Stretch:
    """Find the main trials that belong together: those of the current sitting, or all of a study of one."""
    rows = _list(db, session, manifest)
    if not rows:
        return Stretch(session["practice"], session["main"])
    current = find_current(rows)
    first = session["practice"] if current["number"] == 1 else rows[current["number"] - 2]["ends"]
    return Stretch(first, current["ends"] - first)


def find_current(rows: list[SittingRow]) -> SittingRow:
    """Find the sitting that was started last."""
    return [row for row in rows if row["started_at"] is not None][-1]


def find_number(db: Connection, session: SessionRow, manifest: Manifest) -> int:
    """Find the number of the current sitting; 1 in a study of one."""
    rows = _list(db, session, manifest)
    return find_current(rows)["number"] if rows else 1


def note_end(db: Connection, session: SessionRow, manifest: Manifest, now: int) -> None:
    """Record the end of a sitting whose last trial has its response, and hold the place until the next one is over."""
    rows = _list(db, session, manifest)
    if not rows or session["position"] != find_current(rows)["ends"]:
        return
    sittings.change(db, find_current(rows), {"ended_at": timemark.compute_trusted_time(db, now)})
    wait = find_wait(db, session, manifest)
    if wait is not None:
        longest = procedure_of(manifest).pacing.longest_minutes * MINUTE_NS
        sittings.hold_slot(db, session["session_id"], wait.closes_at + longest)


def start(db: Connection, session: SessionRow, manifest: Manifest, now: int) -> None:
    """Record that the next sitting was started."""
    rows = _list(db, session, manifest)
    sittings.change(db, rows[find_current(rows)["number"]], {"started_at": now})


def find_wait(db: Connection, session: SessionRow, manifest: Manifest) -> Wait | None:
    """Find the sitting that a participant waits for; None of those who are in one, and after the last."""
    rows, planned = _list(db, session, manifest), procedure_of(manifest).sittings
    if not rows or planned is None:
        return None
    current = find_current(rows)
    if current["ended_at"] is None or current is rows[-1]:
        return None
    return compute_wait(planned, session, current)


def compute_wait(planned: Sittings, session: SessionRow, ended: SittingRow) -> Wait:
    """Compute when the sitting after one that has ended opens and closes."""
    end = int(ended["ended_at"] or 0)
    gap = planned.gap_hours * HOUR_NS if session["mode"] == "live" else 0
    return Wait(ended["number"] + 1, end + gap, end + planned.within_hours * HOUR_NS)


def find_deadline(db: Connection, session: SessionRow, manifest: Manifest) -> int:
    """Find when a participation is over that goes on now: the closing of the next sitting, or the end of this one."""
    longest = procedure_of(manifest).pacing.longest_minutes * MINUTE_NS
    rows = _list(db, session, manifest)
    wait = find_wait(db, session, manifest)
    if wait is not None:
        return wait.closes_at
    return int((find_current(rows)["started_at"] if rows else session["agreed_at"]) or 0) + longest


def describe_wait(
    db: Connection, session: SessionRow, manifest: Manifest, texts: dict[str, str], key: bytes, now: int
) -> dict[str, Any]:
    """Describe the page between two sittings: when the next one opens, by this clock, the link to it, and the code."""
    wait = find_wait(db, session, manifest)
    assert wait is not None
    procedure, planned = procedure_of(manifest), procedure_of(manifest).sittings
    assert planned is not None
    values = {"number": wait.number - 1, "next": wait.number, "total": planned.count}
    return {
        "part": "sittings",
        "number": wait.number,
        "opens_ms": wait.opens_at / MS_NS,
        "closes_ms": wait.closes_at / MS_NS,
        "wait_ms": max(0.0, (wait.opens_at - now) / MS_NS),
        "link": BACK + make_link(key, session["session_id"]),
        "texts": {name: fill_placeholders(texts[name], values) for name in texts if name.startswith("sitting_")},
        **_describe_code(procedure, planned, wait),
    }


def _describe_code(procedure: Procedure, planned: Sittings, wait: Wait) -> dict[str, Any]:
    """Describe the completion code of the sitting that has ended, and the link back with it, if the study has codes."""
    code = planned.codes[wait.number - 2] if planned.codes else None
    link = procedure.recruiter.link_back
    return {"code": code, "redirect": link.replace("{code}", code) if code and "{code}" in link else None}


def _list(db: Connection, session: SessionRow, manifest: Manifest) -> list[SittingRow]:
    """List a participant's sittings, without a query where the study has one."""
    return [] if procedure_of(manifest).sittings is None else sittings.list_sittings(db, session["session_id"])
