"""The only door for the front ends: open a study, take part in it, read what was answered."""

from __future__ import annotations

from study.opened import Mode
from study.participant import Ack, Participant, SimulatedTrial
from study.researcher import Researcher

__all__ = ["Ack", "Mode", "Service", "SimulatedTrial"]


class Service(Researcher, Participant):
    """The experiment over one workspace.

    Parameters
    ----------
    home
        Workspace folder, made if missing; the database is ``home/foretell.db`` unless `database` names another URL.
    database
        ``sqlite:////absolute/path.db``. Recruiters' ids are in ``home/identity.db``, whatever it is.
    clock
        Nanoseconds since 1970.
    """
