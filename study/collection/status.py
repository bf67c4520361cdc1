"""State of a collection."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from study.conditions import ORDER_MARK
from study.store.rows import Row


@dataclass(frozen=True)
class StudyStatus:
    """One version of a study and the state of its collection.

    Attributes
    ----------
    name, title, study_hash, folder, state
        ``state`` is open, paused, superseded or closed.
    sessions
        ``{mode: {condition: {stage: number}}}``; the condition is "" before the allocation, and an order of all
        conditions where each participant sees them all.
    access
        Access mode: open, list or personal.
    slots
        ``{mode: {condition: {state: number}}}``, states open, held and done.
    """

    name: str
    title: str
    study_hash: str
    folder: Path
    state: str
    sessions: dict[str, dict[str, dict[str, int]]]
    slots: dict[str, dict[str, dict[str, int]]]
    access: str = "open"

    @property
    def quota(self) -> int:
        """The largest number of participants that any condition takes; 0 if it was never open to them."""
        taken = {place: sum(states.values()) for place, states in self.slots.get("live", {}).items()}
        if any(ORDER_MARK in place for place in taken):
            return sum(taken.values())  # each sees every condition
        return max(taken.values(), default=0)


def nest_counts(rows: list[Row], key: str) -> dict[str, dict[str, dict[str, int]]]:
    """Nest counts as ``{mode: {condition: {key: n}}}``."""
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for row in rows:
        counts.setdefault(row["mode"], {}).setdefault(row["condition"] or "", {})[row[key]] = row["n"]
    return counts
