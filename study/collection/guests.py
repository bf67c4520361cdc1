"""Access to a collection and exclusions from it, with an audit trail."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

import pandas as pd

from core.errors import ForetellError
from study.collection.door import ResearcherDoor
from study.collection.frames import pseudonym
from study.participation.session import UNDER_WAY
from study.store import Connection, audit, guests, quota, repository
from study.store.rows import SessionRow

AccessMode = Literal["open", "list", "personal"]
ACCESS: dict[AccessMode, str] = {
    "open": "Anyone with the link",
    "list": "IDs on a closed list",
    "personal": "Personal (signed) links",
}
COLUMNS = ("participant", "reason", "time")
BY_RESEARCHER = "excluded by a researcher"
"""Rule by which Monitor counts researchers' exclusions, before the reason."""


class Guests(ResearcherDoor):
    """The part of the researcher's door that is about participants: access modes, places and exclusions."""

    def set_access(self, study: str, access: AccessMode, ids: Sequence[str] = ()) -> int:
        """Set who may start the open version and add `ids` to its closed list; return the length of the list.

        Participants who have started are not affected. An id may be a `pid` or a Prolific id.
        """
        if access not in ACCESS:
            raise ForetellError(f"The access mode {access!r} does not exist. Choose one of: {', '.join(ACCESS)}.")
        who = [self.workspace.pseudonym_of(study, source, id_) for id_ in ids for source in ("link", "prolific")]

        def work(db: Connection) -> int:
            if not guests.set_access(db, study, access):
                return -1
            guests.invite(db, study, who)
            detail = {"study": study, "access": access, "added": len(ids)}
            audit.append(db, self.workspace.clock(), self.actor, "set access", detail)
            return guests.n_invited(db, study) // 2

        listed = self.workspace.store.write(work)
        if listed < 0:
            raise self.workspace.unknown_study(study)
        return listed

    def release_quota_place(self, study: str, participant: str, reason: str) -> None:
        """Release an unfinished participant's place; they may still finish, over the quota.

        Raises
        ------
        ForetellError
            No such participant in the study, they hold no place, or no reason is given.
        """

        def work(db: Connection) -> None:
            session = self._participant(db, study, participant)
            if session["stage"] not in UNDER_WAY or session["condition"] is None:
                raise ForetellError(f"{participant} holds no place (they are at {session['stage']!r}).")
            quota.free_slot(db, session["session_id"])
            self._note(db, "released a place", session, reason)

        self.workspace.store.write(work)

    def exclude(self, study: str, participant: str, reason: str) -> None:
        """Exclude a participant from the responses and release their place, even a finished one.

        Their responses stay in the database; the table of participants records the exclusion and its reason.

        Raises
        ------
        ForetellError
            No such participant in the study, or no reason is given.
        """

        def work(db: Connection) -> None:
            session = self._participant(db, study, participant)
            quota.free_slot(db, session["session_id"])
            guests.exclude(db, session["session_id"], reason.strip(), self.workspace.clock())
            self._note(db, "excluded a participant", session, reason)

        self.workspace.store.write(work)

    def exclusions(self, study: str) -> pd.DataFrame:
        """Tabulate the researchers' exclusions: ``participant, reason, time`` (UTC)."""
        rows = self.workspace.store.read(lambda db: guests.exclusions(db, study))
        told = [(pseudonym(row), row["reason"], datetime.fromtimestamp(row["at"] / 1e9, UTC)) for row in rows]
        return pd.DataFrame(told, columns=list(COLUMNS))

    def count_exclusions(self, study_hash: str) -> pd.DataFrame:
        """Count the participants whom a researcher excluded from a frozen study, a rule for each reason.

        Returns
        -------
        pandas.DataFrame
            ``rule, people, answers``, as of `study.analysis.planned.exclude`.
        """
        rows = self.workspace.store.read(lambda db: guests.count_exclusions(db, study_hash))
        counts = [(f"{BY_RESEARCHER}: {row['reason']}", int(row["people"]), int(row["answers"])) for row in rows]
        return pd.DataFrame(counts, columns=["rule", "people", "answers"])

    def _participant(self, db: Connection, study: str, participant: str) -> SessionRow:
        """Find the session of a participant by their pseudonym."""
        found = [row for row in repository.sessions(db, study, ["live"]) if pseudonym(row) == participant]
        if len(found) != 1:
            raise ForetellError(f"No participant of {study!r} is called {participant!r}. Names begin with P.")
        return found[0]

    def _note(self, db: Connection, act: str, session: SessionRow, reason: str) -> None:
        if not reason.strip():
            raise ForetellError("Give a reason: it is logged in the audit trail.")
        detail = {"session": session["session_id"], "reason": reason.strip()}
        audit.append(db, self.workspace.clock(), self.actor, act, detail)
