"""Messages to the participants of a collection, each in the audit trail under its author's name."""

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd

from core.errors import ForetellError
from study.collection.access.permissions import Permission
from study.collection.guests import Guests
from study.collection.tables.frames import pseudonym
from study.participation.messages import SENT, list_seen, list_sent
from study.participation.session import UNDER_WAY
from study.store import Connection, audit, repository
from study.store.rows import SessionRow

LONGEST_MESSAGE = 500
"""Characters of a message."""
COLUMNS = ("time", "author", "recipient", "message", "sent", "shown")


class Messages(Guests):
    """The part of the researcher's door that is about messages to participants."""

    def send_message(self, study: str, text: str, participant: str = "") -> int:
        """Send a message to the participants who are in the study now, or to one; return how many these are.

        Their pages show it as plain text on the next page that is no trial: a break, or the next part of the study.

        Parameters
        ----------
        participant
            Their name on Monitor (``P…``); "" for all.

        Raises
        ------
        ForetellError
            The text is empty or too long, there is no such participant, or they are not in the study now.
        """
        said = "\n".join(line.rstrip() for line in text.strip().splitlines())
        if not said:
            raise ForetellError("Write the message that participants are to read.")
        if len(said) > LONGEST_MESSAGE:
            raise ForetellError(f"The message has {len(said):,} characters. Shorten it to {LONGEST_MESSAGE}.")

        def work(db: Connection) -> int:
            self._require_in(db, Permission.MANAGE_PARTICIPANTS, study)
            there = self._list_recipients(db, study, participant.strip())
            session = there[0]["session_id"] if participant.strip() else None
            detail = {"study": study, "session": session, "text": said, "participants": len(there)}
            audit.append(db, self.workspace.clock(), self.actor, SENT, detail)
            return len(there)

        return self.workspace.store.write(work)

    def list_messages(self, study: str) -> pd.DataFrame:
        """Tabulate the messages of a study, the oldest first.

        Returns
        -------
        pandas.DataFrame
            ``time`` (UTC), ``author, recipient, message``, to how many it was ``sent``, and to how many ``shown`` so
            far; withdrawn participants are no longer counted there.
        """
        return self.workspace.store.read(lambda db: _tabulate(db, study))

    def _list_recipients(self, db: Connection, study: str, participant: str) -> list[SessionRow]:
        if not participant:
            there = [row for row in repository.sessions(db, study, ["live"]) if row["stage"] in UNDER_WAY]
            if not there:
                raise ForetellError(f"No participant is in {study} now. A message reaches only those who are.")
            return there
        session = self._participant(db, study, participant)
        if session["stage"] not in UNDER_WAY:
            raise ForetellError(
                f"{participant} is not in the study now (they are at {session['stage']!r}). No message reaches them."
            )
        return [session]


def _tabulate(db: Connection, study: str) -> pd.DataFrame:
    sessions = {row["session_id"]: row for row in repository.sessions(db, study, ["live"])}
    seen = [list_seen(db, session_id) for session_id in sessions]
    rows = []
    for message in list_sent(db, study):
        at, actor = datetime.fromtimestamp(message.row["at"] / 1e9, UTC), message.row["actor"]
        recipient = "all" if message.session is None else pseudonym(sessions[message.session])
        shown = sum(message.number in numbers for numbers in seen)
        rows.append((at, actor, recipient, message.text, message.participants, shown))
    return pd.DataFrame(rows, columns=list(COLUMNS))
