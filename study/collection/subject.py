"""Everything that is held about one participant, as they may ask for it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from study.collection.tables.frames import pseudonym
from study.participation.open_workspace import OpenWorkspace
from study.store import Connection, identities, subject
from study.store.rows import Row, SessionRow

NOTE = (
    "Times are nanoseconds since 1970 (UTC). Images are named by the SHA-256 of their bytes. Tables and columns are "
    "described in the data dictionary of Foretell. Backups and exported files are not included."
)


def collect(db: Connection, workspace: OpenWorkspace, session: SessionRow) -> dict[str, Any]:
    """Collect what the databases hold about a participant, by table."""
    known = workspace.identities.read(lambda ids: identities.of_study(ids, session["study"]))
    own = [row for row in known if row["participant_id"] == session["participant_id"]]
    tables = {**subject.collect_rows(db, session), "identity": own}
    return {
        "participant": pseudonym(session),
        "study": session["study"],
        "study_hash": session["study_hash"],
        "made_at": datetime.fromtimestamp(workspace.clock() / 1e9, UTC).isoformat(),
        "note": NOTE,
        "tables": {name: [_unpack(row) for row in rows] for name, rows in tables.items()},
    }


def _unpack(row: Row) -> dict[str, Any]:
    """Return a row with what a column holds as JSON unpacked."""
    return {
        key: json.loads(value) if key.endswith("_json") and isinstance(value, str) else value
        for key, value in row.items()
    }
