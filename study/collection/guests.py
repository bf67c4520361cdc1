"""Access to a collection and exclusions from it, with an audit trail."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import pandas as pd

from core.errors import ForetellError
from study.collection import subject
from study.collection.access.door import ResearcherDoor
from study.collection.access.permissions import Permission
from study.collection.tables.frames import pseudonym
from study.collection.tables.sittings import tabulate_links
from study.participation import ending
from study.participation.payloads import SOURCES
from study.participation.session import UNDER_WAY
from study.store import Connection, audit, guests, identities, quota, repository
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
LONGEST_REASON = 300
"""Characters of a reason in the audit trail, which keeps it for good."""


class Withdrawal(NamedTuple):
    """A participant whose responses were erased at their request, and how many responses those were."""

    participant: str
    responses: int


class Guests(ResearcherDoor):
    """The part of the researcher's door that is about participants: access modes, places and exclusions."""

    def set_access(self, study: str, access: AccessMode, ids: Sequence[str] = ()) -> int:
        """Set who may start the open version and add `ids` to its closed list; return the length of the list.

        Participants who have started are not affected. An id may be a `pid` or a Prolific id.
        """
        if access not in ACCESS:
            raise ForetellError(f"The access mode {access!r} does not exist. Choose one of: {', '.join(ACCESS)}.")
        who = [name for id_ in ids for name in self.workspace.pseudonyms_of(study, id_)]

        def work(db: Connection) -> int:
            if not guests.set_access(db, study, access):
                return -1
            guests.invite(db, study, who)
            detail = {"study": study, "access": access, "added": len(ids)}
            audit.append(db, self.workspace.clock(), self.actor, "set access", detail)
            return guests.n_invited(db, study) // len(SOURCES)

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

    def withdraw_participant(self, study: str, participant: str, request: str) -> Withdrawal:
        """Erase the responses of a participant who asked for it, exactly as their own private code would.

        Parameters
        ----------
        participant
            Their name on Monitor (``P…``), their private code, or the id with which they came.
        request
            How and when they asked; the audit trail records it.

        Raises
        ------
        ForetellError
            No such participant in the study, nothing of them is stored, or `request` is empty or too long.
        """
        _require_reason(request, "Say how and when the participant asked")

        def work(db: Connection) -> Withdrawal:
            self._require_in(db, Permission.MANAGE_PARTICIPANTS, study)
            session = self._find_named(db, study, participant.strip())
            _refuse_without_data(session)
            manifest, now = self.workspace.manifest_of(session), self.workspace.clock()
            erased = ending.withdraw(db, session, manifest, now, self.actor, request.strip())
            return Withdrawal(pseudonym(session), erased)

        return self.workspace.store.erase(work)

    def collect_subject_data(self, study: str, participant: str, request: str) -> dict[str, Any]:
        """Collect everything that is held about a participant who asked for it.

        Parameters
        ----------
        participant
            Their name on Monitor (``P…``), their private code, or the id with which they came.
        request
            How and when they asked; the audit trail records it.

        Raises
        ------
        ForetellError
            No such participant in the study, or `request` is empty or too long.
        """
        _require_reason(request, "Say how and when the participant asked")

        def work(db: Connection) -> dict[str, Any]:
            self._require_in(db, Permission.MANAGE_PARTICIPANTS, study)
            session = self._find_named(db, study, participant.strip())
            self._note(db, "gave a participant their data", session, request)
            return subject.collect(db, self.workspace, session)

        return self.workspace.store.write(work)

    def list_sitting_links(self, study: str) -> pd.DataFrame:
        """Tabulate the personal links of participants who may still start their next sitting.

        Returns
        -------
        pandas.DataFrame
            ``pid`` (the id with which they came; participants without one are left out), ``sitting``, ``opens_at`` and
            ``closes_at`` (UTC), ``link`` (its path, to be appended to the server's address).
        """
        self.workspace.require_study(study)
        stored = self.workspace.identities.read(lambda db: identities.of_study(db, study))
        now = self.workspace.clock()
        table = self.workspace.store.read(
            lambda db: tabulate_links(db, study, stored, self.workspace.manifest_of, self.workspace.key, now)
        )
        self.workspace.note(self.actor, "listed links of sittings", {"study": study, "count": len(table)})
        return table

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
            ``rule, people, responses``, as of `study.analysis.planned.analysis.exclude`.
        """
        rows = self.workspace.store.read(lambda db: guests.count_exclusions(db, study_hash))
        counts = [(f"{BY_RESEARCHER}: {row['reason']}", int(row["people"]), int(row["responses"])) for row in rows]
        return pd.DataFrame(counts, columns=["rule", "people", "responses"])

    def _participant(self, db: Connection, study: str, participant: str) -> SessionRow:
        """Find the session of a participant by their pseudonym."""
        rows = [row for row in repository.sessions(db, study, ["live"]) if pseudonym(row) == participant]
        if len(rows) != 1:
            raise ForetellError(f"No participant of {study!r} is called {participant!r}. Names begin with P.")
        return rows[0]

    def _find_named(self, db: Connection, study: str, named: str) -> SessionRow:
        """Find the session of a participant by whatever they name in a request; never that of another study."""
        code = ending.code_hash_of(self.workspace.key, ending.tidy(named))
        by_id = self.workspace.pseudonyms_of(study, named)
        for session in repository.sessions(db, study, ["live"]):
            if named == pseudonym(session) or session["code_hash"] == code or session["participant_id"] in by_id:
                return session
        raise ForetellError(
            f"No participant of {study!r} has this name, private code or id. Names begin with P: see the table of "
            "participants."
        )

    def _note(self, db: Connection, act: str, session: SessionRow, reason: str) -> None:
        _require_reason(reason, "Give a reason")
        detail = {"session": session["session_id"], "reason": reason.strip()}
        audit.append(db, self.workspace.clock(), self.actor, act, detail)


def _require_reason(reason: str, ask: str) -> None:
    if not reason.strip():
        raise ForetellError(f"{ask}: it is logged in the audit trail.")
    if len(reason) > LONGEST_REASON:
        raise ForetellError(f"The text has {len(reason):,} characters. Shorten it to {LONGEST_REASON}.")


def _refuse_without_data(session: SessionRow) -> None:
    """Refuse a withdrawal where nothing of a participant is stored."""
    name = pseudonym(session)
    if session["stage"] == "withdrawn":
        raise ForetellError(f"{name} has withdrawn before. Nothing is left to erase.")
    if session["stage"] in ("consent", "declined"):
        raise ForetellError(f"{name} has not agreed to take part. Nothing is stored that could be erased.")
