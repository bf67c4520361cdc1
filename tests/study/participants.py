"""What tests of the service do in a participant's name."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from study.participation.payloads import TrialResponse
from study.service import Service
from study.store.tables import METADATA

MakeBundle = Callable[..., Path]
CONDITIONS = ("none", "saliency", "examples", "both")


def answer(index: int, side: str = "left", **values: Any) -> TrialResponse:
    fields = {"attempt_id": str(uuid.uuid4()), "input": "key", "rt_ms": 512.5, **values}
    return TrialResponse(trial_index=index, side=side, **fields)  # type: ignore[arg-type]


def to_place(service: Service, token: str) -> dict[str, Any]:
    """Agree, and read what comes before a place is given."""
    service.participant.consent(token, True)
    return service.participant.ready(token)


def to_trials(service: Service, token: str) -> dict[str, Any]:
    to_place(service, token)
    return service.participant.ready(token, "example")


def take_part(service: Service, token: str, side: str = "left") -> list[dict[str, Any]]:
    """Answer everything; the screens that were shown."""
    state = to_trials(service, token)
    screens = []
    while state["stage"] in ("practice", "main"):
        screens.append(state["trial"])
        ack = service.participant.record(token, answer(state["trial"]["index"], side))
        assert ack.code == 201
        state = ack.state
    if state["stage"] == "debrief":
        service.participant.finish(token)
    return screens


def query(service: Service, sql: str) -> list[tuple[Any, ...]]:
    """One statement, whatever the database, by the side door: as its owner could."""
    with service.workspace.store._writing.begin() as db:
        found = db.exec_driver_sql(sql)
        return [tuple(row) for row in found] if found.returns_rows else []


def tamper(service: Service, sql: str) -> None:
    """Done to the database itself, the triggers out of the way."""
    if isinstance(service.workspace.database, str):
        with service.workspace.store._writing.begin() as db:
            db.exec_driver_sql("SET LOCAL session_replication_role = replica")  # nor are foreign keys looked at
            db.exec_driver_sql(sql)
        return
    with sqlite3.connect(service.workspace.home / "foretell.db") as file:
        for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            file.execute(f"DROP TRIGGER {name}")
        file.execute(sql)


def everything(service: Service) -> str:
    """All that the database of answers holds, as text."""
    return "\n".join(str(query(service, f"SELECT * FROM {name}")) for name in METADATA.tables)
