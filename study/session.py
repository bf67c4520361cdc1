"""The participant's state machine: ``step(progress, event) -> progress``, pure.

consent -> instructions -> practice -> main -> debrief -> done; ``declined`` and ``full`` end at consent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from core.errors import ForetellError

Stage = Literal["consent", "instructions", "practice", "main", "debrief", "done", "declined", "full"]
Event = Literal["agree", "decline", "full", "ready", "answer", "finish"]

ENDED: tuple[Stage, ...] = ("done", "declined", "full")

_MOVES: dict[tuple[Stage, Event], Stage] = {
    ("consent", "agree"): "instructions",
    ("consent", "decline"): "declined",
    ("consent", "full"): "full",
    ("instructions", "ready"): "practice",
    ("practice", "answer"): "practice",
    ("main", "answer"): "main",
    ("debrief", "finish"): "done",
}


class IllegalStep(ForetellError):
    """An event that the participant's stage does not allow."""


@dataclass(frozen=True)
class Progress:
    """Where one participant is.

    Attributes
    ----------
    stage
        Which page.
    position
        Index of the trial to answer next: 0 to practice - 1 are practice, then come the main trials.
    practice, main
        Number of practice and main trials.
    """

    stage: Stage
    position: int
    practice: int
    main: int


def step(progress: Progress, event: Event) -> Progress:
    """The next state; raises `IllegalStep` where the stage does not allow the event."""
    stage = _MOVES.get((progress.stage, event))
    if stage is None:
        raise IllegalStep(f"{event!r} is not possible at {progress.stage!r}. Reload the page to continue.")
    position = progress.position + (event == "answer")
    if stage == "practice" and position >= progress.practice:
        stage = "main"
    if stage == "main" and position >= progress.practice + progress.main:
        stage = "debrief"
    return replace(progress, stage=stage, position=position)
