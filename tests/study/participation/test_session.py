"""The state machine against the table of pages in its own words."""

import itertools
from typing import get_args

import pytest

from study.participation.session import Event, IllegalStep, SessionProgress, step
from study.store.rows import Stage


def walk(events: str, practice: int = 2, main: int = 3, check: bool = False, items: bool = False) -> SessionProgress:
    progress = SessionProgress("consent", 0, practice, main, check, items)
    for event in events.split():
        progress = step(progress, event)  # type: ignore[arg-type]
    return progress


@pytest.mark.parametrize(
    ("events", "stage", "position"),
    [
        ("decline", "declined", 0),
        ("agree", "instructions", 0),
        ("agree read", "example", 0),
        ("agree read full", "full", 0),
        ("agree read seen", "practice", 0),
        ("agree read seen respond", "practice", 1),
        ("agree read seen respond respond", "main", 2),
        ("agree read seen respond respond respond respond respond", "debrief", 5),
        ("agree read seen respond respond respond respond respond finish", "done", 5),
        ("agree read seen respond respond respond respond respond finish withdraw", "withdrawn", 5),
        ("agree read seen respond expire", "expired", 1),
    ],
)
def test_the_procedure(events: str, stage: Stage, position: int) -> None:
    progress = walk(events)
    assert (progress.stage, progress.position) == (stage, position)


@pytest.mark.parametrize(
    ("events", "stage"),
    [
        ("agree read", "check"),
        ("agree read again", "instructions"),
        ("agree read again read screen", "screened"),
        ("agree read pass", "example"),
        ("agree read pass seen respond respond respond respond respond", "questionnaire"),
        ("agree read pass seen respond respond respond respond respond fill", "debrief"),
    ],
)
def test_a_check_and_a_questionnaire_where_the_study_has_them(events: str, stage: Stage) -> None:
    assert walk(events, check=True, items=True).stage == stage


def test_a_study_without_practice_begins_with_the_main_trials() -> None:
    assert walk("agree read seen", practice=0).stage == "main"


def test_everything_else_is_refused() -> None:
    """Catches a move added by mistake: thirteen moves onward, and the ways out."""
    allowed = set()
    for stage, event in itertools.product(get_args(Stage), get_args(Event)):
        try:
            step(SessionProgress(stage, 0, 2, 3), event)
        except IllegalStep:
            continue
        allowed.add((stage, event))
    under_way = ("instructions", "check", "example", "practice", "main", "between", "questionnaire", "debrief")
    assert allowed == {
        ("consent", "agree"),
        ("consent", "decline"),
        ("instructions", "read"),
        ("check", "pass"),
        ("check", "again"),
        ("check", "screen"),
        ("example", "full"),
        ("example", "seen"),
        ("practice", "respond"),
        ("main", "respond"),
        ("between", "return"),
        ("questionnaire", "fill"),
        ("debrief", "finish"),
        *((stage, "expire") for stage in under_way),
        *((stage, "withdraw") for stage in (*under_way, "done", "screened", "full", "expired")),
    }
