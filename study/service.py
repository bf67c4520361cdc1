"""The experiment over one workspace, with separate interfaces for participants, researchers and logins."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from study.collection.access.logins import Access
from study.collection.researcher import Researcher
from study.participation.open_workspace import OpenWorkspace
from study.participation.participant import Ack, Participant, SimulatedTrial
from study.store import Place
from study.store.rows import Mode

__all__ = ["Ack", "Mode", "Participant", "Service", "SimulatedTrial"]


class Service:
    """The experiment over one workspace.

    Parameters
    ----------
    home
        Workspace folder, created if missing.
    database
        A file, or ``sqlite:////absolute/path.db``, or ``postgresql://user:password@host/database``; by default what
        ``FORETELL_DATABASE`` names, else ``home/foretell.db``. Recruiters' ids are in ``home/identity.db``, or in the
        schema ``identity`` of a PostgreSQL database.
    clock
        Nanoseconds since 1970.

    Attributes
    ----------
    participant
        Interface for participants: it opens no study, unblinds nothing and knows no password.
    researcher
        Interface for the pages and the command line.
    access
        Logins to the researcher's pages.
    workspace
        The databases and bundles that the interfaces share.
    """

    def __init__(self, home: Path, database: Place | None = None, clock: Callable[[], int] = time.time_ns) -> None:
        self.workspace = OpenWorkspace(home, database, clock)
        self.participant = Participant(self.workspace)
        self.researcher = Researcher(self.workspace)
        self.access = Access(self.workspace)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def act_as(self, person: str) -> Researcher:
        """Return the researcher's interface of an account, with its permissions and its name in the audit trail."""
        return Researcher(self.workspace, self.access.account_of(person))

    def close(self) -> None:
        """Commit what is queued and close the databases."""
        self.workspace.close()
