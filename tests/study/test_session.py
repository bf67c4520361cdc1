"""The state machine against the table of pages in its own words."""

import itertools
from typing import get_args

import pytest

from study.session import Event, IllegalStep, Progress, Stage, step


def walk(events: str, practice: int = 2, main: int = 3) -> Progress:
    progress = Progress("consent", 0, practice, main)
    for event in events.split():
        progress = step(progress, event)  # type: ignore[arg-type]
    return progress


@pytest.mark.parametrize(
    ("events", "stage", "position"),
    [
        ("decline", "declined", 0),
        ("full", "full", 0),
        ("agree", "instructions", 0),
        ("agree ready", "practice", 0),
        ("agree ready answer", "practice", 1),
        ("agree ready answer answer", "main", 2),
        ("agree ready answer answer answer answer answer", "debrief", 5),
        ("agree ready answer answer answer answer answer finish", "done", 5),
    ],
)
def test_the_road(events: str, stage: Stage, position: int) -> None:
    progress = walk(events)
    assert (progress.stage, progress.position) == (stage, position)


def test_a_study_without_practice_begins_with_the_main_trials() -> None:
    assert walk("agree ready", practice=0).stage == "main"


def test_everything_else_is_refused() -> None:
    """Catches a move added by mistake: exactly seven of the 48 pairs are allowed."""
    allowed = set()
    for stage, event in itertools.product(get_args(Stage), get_args(Event)):
        try:
            step(Progress(stage, 0, 2, 3), event)
        except IllegalStep:
            continue
        allowed.add((stage, event))
    assert allowed == {
        ("consent", "agree"),
        ("consent", "decline"),
        ("consent", "full"),
        ("instructions", "ready"),
        ("practice", "answer"),
        ("main", "answer"),
        ("debrief", "finish"),
    }
