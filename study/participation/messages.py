"""Messages of researchers to participants, from the audit trail: what a participant has not been shown yet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from study.participation.session import UNDER_WAY
from study.store import Connection, audit, repository
from study.store.rows import Row, SessionRow

SENT = "sent a message"
"""The act under which the audit trail keeps a message: what participants were told cannot be changed later."""
SHOWN = "message"
"""Kind of the page's event once a participant has read a message; its ``number`` names the act."""


class Message(NamedTuple):
    """A message.

    Attributes
    ----------
    number, text
        Of its act in the audit trail, and its plain text.
    session
        The session that it is for; None for all that were in the study.
    participants
        How many these were.
    row
        The act.
    """

    number: int
    text: str
    session: str | None
    participants: int
    row: Row


def list_sent(db: Connection, study: str) -> Iterator[Message]:
    """Yield the messages sent to participants of a study, the oldest first."""
    for row in audit.acts(db, SENT):
        detail = json.loads(row["detail_json"])
        if detail["study"] == study:
            yield Message(row["seq"], detail["text"], detail["session"], detail["participants"], row)


def list_unseen(db: Connection, session: SessionRow) -> list[Message]:
    """List what a participant has not been shown yet; nothing that was sent before their consent or after their end."""
    if session["stage"] not in UNDER_WAY or session["mode"] != "live":
        return []
    seen = list_seen(db, session["session_id"])
    return [
        message
        for message in list_sent(db, session["study"])
        if message.session in (None, session["session_id"])
        and message.number not in seen
        and (session["agreed_at"] or 0) <= message.row["at"]
    ]


def list_seen(db: Connection, session_id: str) -> set[int]:
    """List the numbers of the messages that a participant has read, as their page says."""
    events = repository.events_of(db, session_id, SHOWN)
    numbers = {json.loads(event["payload_json"]).get("number") for event in events}
    return {number for number in numbers if type(number) is int}
