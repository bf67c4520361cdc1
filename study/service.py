"""The only door for the front ends: open a study, take part in it, read what was answered."""

from __future__ import annotations

from study.collection.access import Access
from study.participation.open_workspace import Mode
from study.participation.participant import Ack, Participant, SimulatedTrial

__all__ = ["Ack", "Mode", "Service", "SimulatedTrial"]


class Service(Access, Participant):
    """The experiment over one workspace.

    Parameters
    ----------
    home
        Workspace folder, made if missing.
    database
        ``sqlite:////absolute/path.db`` or ``postgresql://user:password@host/database``; by default what
        ``FORETELL_DATABASE`` names, else ``home/foretell.db``. Recruiters' ids are in ``home/identity.db``, or in the
        schema ``identity`` of a PostgreSQL database.
    clock
        Nanoseconds since 1970.
    """
