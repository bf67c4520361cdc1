"""How many participants are in which sitting, and the links of those who are to return. Blinded: no condition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from study.bundle import Manifest
from study.collection.tables.stored import format_time
from study.participation.sittings.course import BACK, compute_wait, make_link
from study.plan.procedure import procedure_of
from study.store import Connection, repository, sittings
from study.store.rows import Row, SessionRow, SittingRow

COLUMNS = ("sitting", "started", "ended", "waiting", "missed")
LINK_COLUMNS = ("pid", "sitting", "opens_at", "closes_at", "link")


def tabulate_sittings(
    sessions: Sequence[SessionRow],
    by_session: Mapping[str, Sequence[SittingRow]],
    manifest_of: Callable[[SessionRow], Manifest],
    now: int,
) -> pd.DataFrame:
    """Count participants by sitting: started it, ended it, may still start it, and did not start it in time."""
    counts: dict[int, dict[str, int]] = {}
    for session in (one for one in sessions if one["session_id"] in by_session):
        rows, settings = by_session[session["session_id"]], procedure_of(manifest_of(session)).sittings
        before: SittingRow | None = None
        for row in rows:
            own = counts.setdefault(row["number"], dict.fromkeys(COLUMNS[1:], 0))
            own["started"] += row["started_at"] is not None
            own["ended"] += row["ended_at"] is not None
            if settings is not None and before is not None and before["ended_at"] and row["started_at"] is None:
                is_over = session["stage"] != "between" or now > compute_wait(settings, session, before).closes_at
                own["missed" if is_over else "waiting"] += 1
            before = row
    return pd.DataFrame([{"sitting": number, **own} for number, own in sorted(counts.items())], columns=list(COLUMNS))


def tabulate_links(
    db: Connection,
    study: str,
    stored: Sequence[Row],
    manifest_of: Callable[[SessionRow], Manifest],
    key: bytes,
    now: int,
) -> pd.DataFrame:
    """Tabulate the personal links of the participants who may still start their next sitting, as of `LINK_COLUMNS`.

    Parameters
    ----------
    stored
        The identities of the study that are still stored. Participants without one are left out: nothing that names
        them in the responses may be next to an id.
    """
    ids = {row["participant_id"]: row["ext_person"] for row in stored}
    listed: list[tuple[object, ...]] = []
    by_session = sittings.list_by_session(db, study)
    for session in repository.sessions(db, study, ["live"]):
        settings = procedure_of(manifest_of(session)).sittings
        if session["stage"] != "between" or settings is None or session["participant_id"] not in ids:
            continue
        ended = [row for row in by_session[session["session_id"]] if row["ended_at"] is not None]
        wait = compute_wait(settings, session, ended[-1])
        if now <= wait.closes_at:
            times = format_time(wait.opens_at), format_time(wait.closes_at)
            link = f"/run/{study}#{BACK}{make_link(key, session['session_id'])}"
            listed.append((ids[session["participant_id"]], wait.number, *times, link))
    return pd.DataFrame(listed, columns=list(LINK_COLUMNS))
