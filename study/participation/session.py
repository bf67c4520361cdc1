"""The participant's state machine: ``step(progress, event) -> progress``, pure.

consent -> instructions -> check -> example -> practice -> main -> questionnaire -> debrief -> done. A stage the study
does not have is passed over. ``example`` is the first that differs between conditions: a place is given on its
threshold. With several sittings, participants are ``between`` two of them while they wait for the next one; its trials
are ``main`` again. ``declined``, ``screened``, ``full``, ``expired`` and ``withdrawn`` are the other ends.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from core.errors import ForetellError
from study.store.rows import Stage

Event = Literal[
    "agree", "decline", "read", "pass", "again", "screen", "full", "seen", "respond", "return", "fill", "finish",
    "expire", "withdraw",
]  # fmt: skip

ENDED: tuple[Stage, ...] = ("done", "declined", "screened", "full", "expired", "withdrawn")
UNDER_WAY: tuple[Stage, ...] = (
    "instructions", "check", "example", "practice", "main", "between", "questionnaire", "debrief",
)  # fmt: skip

_MOVES: dict[tuple[Stage, Event], Stage] = {
    ("consent", "agree"): "instructions",
    ("consent", "decline"): "declined",
    ("instructions", "read"): "check",
    ("check", "pass"): "example",
    ("check", "again"): "instructions",
    ("check", "screen"): "screened",
    ("example", "full"): "full",
    ("example", "seen"): "practice",
    ("practice", "respond"): "practice",
    ("main", "respond"): "main",
    ("between", "return"): "main",
    ("questionnaire", "fill"): "debrief",
    ("debrief", "finish"): "done",
    **{(stage, "expire"): "expired" for stage in UNDER_WAY},
    **{(stage, "withdraw"): "withdrawn" for stage in (*UNDER_WAY, "done", "screened", "full", "expired")},
}


class IllegalStep(ForetellError):
    """An event that the participant's stage does not allow."""


@dataclass(frozen=True)
class SessionProgress:
    """One participant's progress.

    Attributes
    ----------
    stage
        Which page.
    position
        Index of the current trial: 0 to practice - 1 are practice, then come the main trials.
    practice, main
        Number of practice trials, and of all others.
    check, questionnaire
        Whether the study has these stages.
    ends
        Index after the last trial of each sitting, where there are several.
    """

    stage: Stage
    position: int
    practice: int
    main: int
    check: bool = False
    questionnaire: bool = False
    ends: tuple[int, ...] = ()


def step(progress: SessionProgress, event: Event) -> SessionProgress:
    """Return the next state; raises `IllegalStep` where the stage does not allow the event."""
    stage = _MOVES.get((progress.stage, event))
    if stage is None:
        raise IllegalStep(f"{event!r} is not possible at {progress.stage!r}. Reload the page to continue.")
    position = progress.position + (event == "respond")
    if stage == "check" and not progress.check:
        stage = "example"
    if stage == "practice" and position >= progress.practice:
        stage = "main"
    if stage == "main" and position >= progress.practice + progress.main:
        stage = "questionnaire"
    if stage == "main" and event == "respond" and position in progress.ends:
        stage = "between"
    if stage == "questionnaire" and not progress.questionnaire:
        stage = "debrief"
    return replace(progress, stage=stage, position=position)
