"""Settlement with a recruiter: the bonus of each participant, and a comparison of its list with ours.

Ids and responses never meet in one table: a bonus is an amount, a reconciliation is two statuses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd

from core.errors import ForetellError
from study.bundle import Manifest
from study.participation.session import UNDER_WAY
from study.plan.procedure import procedure_of
from study.store import Connection, audit, quota, repository, sittings
from study.store.rows import Row, SessionRow

PARTICIPANT_ID = ("participant id", "participant_id", "workerid")
STATUS = ("status", "assignmentstatus")
CODE = ("completion code", "completion_code", "entered_code", "answer.surveycode")
"""Columns of Prolific's list and, the last of each, of MTurk's results of a batch, made by its survey template."""
PAID = ("APPROVED", "AWAITING REVIEW")
SUBMITTED = "SUBMITTED"
"""MTurk's status of what Prolific says is awaiting review."""
GONE = ("RETURNED", "TIMED-OUT", "REJECTED")
MOST_NAMES = 20
NO_CODE = "NOCODE"
"""What Prolific lists as the code of a participant who handed in none."""


@dataclass(frozen=True)
class Batch:
    """Bonuses handed over together: ``pid, amount`` in major units with two decimals; missing ids are counted."""

    number: int | None
    rows: pd.DataFrame
    without_id: int


def bonus_batch(db: Connection, study: str, stored: Sequence[Row], batch: int | None, now: int, actor: str) -> Batch:
    """Return the bonuses without a batch, assigning one, or those of an earlier batch. One row per participant."""
    owed = repository.payments(db, study)
    known = {row["batch"] for row in owed} - {None}
    if batch is not None and batch not in known:
        listed = ", ".join(map(str, sorted(known))) or "none"
        raise ForetellError(f"There is no batch {batch} of bonuses of {study!r} (there are: {listed}). Name one.")
    ids = {row["participant_id"]: row["ext_person"] for row in stored}
    mine = [row for row in owed if row["batch"] == batch and row["minor_units"] > 0]
    payable = [row for row in mine if row["participant_id"] in ids]
    if batch is None and payable:
        batch = max(known, default=0) + 1
        repository.set_batch(db, [row["session_id"] for row in payable], batch)
        audit.append(db, now, actor, "exported bonuses", {"study": study, "batch": batch, "n": len(payable)})
    amounts = [(ids[row["participant_id"]], f"{row['minor_units'] / 100:.2f}") for row in payable]
    return Batch(batch, pd.DataFrame(amounts, columns=["pid", "amount"]), len(mine) - len(payable))


def reconcile(
    db: Connection,
    study: str,
    stored: Sequence[Row],
    statuses: pd.DataFrame,
    manifest_of: Callable[[SessionRow], Manifest],
    now: int,
    actor: str,
) -> pd.DataFrame:
    """List the differences: ``person, recruiter, here, matter``. Returned unfinished participations free places.

    A participant who is listed several times is among them: a submission that was handed in counts before one that
    is under way, and that before one that ended.
    """
    theirs = _read_statuses(statuses)
    ours = {row["participant_id"]: row for row in repository.sessions(db, study, ["live"])}
    sessions = {row["ext_person"]: ours[row["participant_id"]] for row in stored if row["participant_id"] in ours}
    entries, by_session = [], sittings.list_by_session(db, study)
    for participant in sorted({*theirs.index, *sessions}):
        status, code, listed = theirs.loc[participant] if participant in theirs.index else (None, "", ())
        session = sessions.get(participant)
        if session is not None and status in GONE and session["stage"] in UNDER_WAY:
            quota.free_slot(db, session["session_id"])
        own = by_session.get(session["session_id"], []) if session is not None else []
        matters = [_compare(status, code, session, manifest_of, sum(row["ended_at"] is not None for row in own))]
        if len(listed) > 1:
            matters.insert(0, f"listed {len(listed)} times ({', '.join(listed)}), of which {status} counts")
        matter = "; ".join(filter(None, matters))
        if matter:
            entries.append((participant, status or "", session["stage"] if session else "", matter))
    audit.append(db, now, actor, "reconciled", {"study": study, "listed": len(theirs), "differ": len(entries)})
    return pd.DataFrame(entries, columns=["person", "recruiter", "here", "matter"])


def _read_statuses(statuses: pd.DataFrame) -> pd.DataFrame:
    """Read status, code and all statuses by participant from a table with the recruiter's own column names."""
    columns = {str(name).strip().lower(): name for name in statuses.columns}
    pid, status = (next((columns[n] for n in names if n in columns), None) for names in (PARTICIPANT_ID, STATUS))
    if pid is None or status is None:
        named = ", ".join(repr(str(name)) for name in list(statuses.columns)[:MOST_NAMES]) or "none"
        raise ForetellError(
            "The recruiter's file needs the columns 'Participant id' and 'Status' (Prolific), or 'WorkerId' and "
            f"'AssignmentStatus' (MTurk), and it has: {named}. Name its columns of ids and of statuses like "
            f"Prolific's, with the statuses {', '.join((*PAID, *GONE))}."
        )
    code = next((columns[n] for n in CODE if n in columns), None)
    texts = statuses.fillna("").astype(str).apply(lambda column: column.str.strip())
    rows = texts.assign(
        pid=texts[pid],
        status=texts[status]
        .str.upper()
        .str.replace("_", "-")
        .replace(["AWAITING-REVIEW", SUBMITTED], "AWAITING REVIEW"),
        code="" if code is None else texts[code],
    )[["pid", "status", "code"]]
    ordered = sorted(rows[rows["pid"] != ""].itertuples(index=False, name=None), key=_rank)
    by_participant = pd.DataFrame(ordered, columns=rows.columns).groupby("pid", sort=False)
    return by_participant.agg(status=("status", "first"), code=("code", "first"), listed=("status", tuple))


def _rank(row: tuple[str, str, str]) -> tuple[object, ...]:
    """Order the rows of a participant, the one that counts first, whatever their order in the file."""
    _, status, code = row
    return status not in PAID, status in GONE, status, code.upper() in ("", NO_CODE), code


def _compare(
    status: str | None, code: str, session: SessionRow | None, manifest_of: Callable[[SessionRow], Manifest], ended: int
) -> str | None:
    """Describe a disagreement; None if there is none. ``ended`` sittings, of which each may have a code of its own."""
    if session is None:
        return "not known here: never opened the link, declined, or the id is erased"
    if status is None:
        return "not in the recruiter's list"
    planned = procedure_of(manifest_of(session)).sittings
    codes = [] if planned is None else [one.casefold() for one in planned.codes]
    if status in PAID and code.casefold() in codes:
        number = codes.index(code.casefold()) + 1
        return None if number <= ended else f"handed in the code of sitting {number}, but not finished it here"
    done = session["stage"] == "done"
    if status in PAID and not done:
        return "handed in, but not finished here"
    if status in GONE and done:
        return "finished here, but not handed in: the responses are complete and may be paid"
    named = procedure_of(manifest_of(session)).recruiter.complete or session["completion_code"]
    if status in PAID and code.upper() == NO_CODE:
        return "handed in no code, but finished here: the responses are complete and may be paid"
    if status in PAID and code and code.casefold() != str(named).casefold():
        return "handed in another code than the one shown here"
    return None
