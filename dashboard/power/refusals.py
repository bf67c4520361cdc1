"""Refuse a power analysis whose simulated studies would not be those of the study."""

from __future__ import annotations

from collections.abc import Sequence

from core.errors import ForetellError
from study.plan.config import StudyConfig
from study.plan.equivalence import Bounds
from study.tasks.task import Task


def refuse_points(study: StudyConfig, bounds: Bounds | None) -> None:
    """Refuse equivalence bounds, which are percentage points, where no response is right or wrong."""
    if bounds is not None and not study.task.is_scored:
        raise ForetellError(
            f"Equivalence bounds are percentage points of correct responses, and no response to the task "
            f"{study.study.task!r} is right or wrong: leave them out."
        )


def refuse_blocks(study: StudyConfig) -> None:
    """Refuse a study of which only a part of each participant's trials are tests."""
    if (blocks := study.blocks) is not None:
        tests = blocks.rounds * blocks.test
        raise ForetellError(
            f"Power takes every trial for a test, and of {blocks.total} trials in this study's blocks {tests} are. "
            f"For its sample size, use a copy without [blocks] and with {tests} trials."
        )


def refuse_adaptive(study: StudyConfig) -> None:
    """Refuse a study that chooses trials by responses: power gives all participants the same trials."""
    if (adaptive := study.adaptive) is not None:
        raise ForetellError(
            "Power gives each participant the same trials, and this study chooses them by responses. For an estimate, "
            f"use a copy without [adaptive] and with {adaptive.trials} trials."
        )


def refuse_pilot_of_units(study: StudyConfig) -> None:
    """Refuse a pilot about units or attributes: its estimates would be of the trial types of predictions."""
    if not study.task.is_of_predictions:
        raise ForetellError(
            f"A pilot gives the effects of each trial type, and the task {study.study.task!r} "
            f"{describe_other_than_two(study.task)}. Build the study and assume simulated participants (--mixture)."
        )


def refuse_separate(study: StudyConfig, simulated: Sequence[str]) -> None:
    """Refuse a study within participants with conditions that are not simulated: they have a part of the trials."""
    if left := [name for name in study.conditions if name not in simulated]:
        raise ForetellError(
            f"Power within participants simulates none, saliency, examples and both, and the study has {left[0]}, "
            "too. For its sample size, use a copy without it and with the trials of the others."
        )


def refuse_other_scale(study: StudyConfig, asked: Task) -> None:
    """Refuse a pilot whose responses are levels where the study's are right or wrong, or of another scale."""
    of_pilot, of_study = (
        "right or wrong" if one.is_scored else f"levels 1 to {one.count}" for one in (asked, study.task)
    )
    if of_pilot != of_study:
        raise ForetellError(
            f"The pilot's responses are {of_pilot}, and this study's are {of_study}: use a pilot of the same task."
        )


def refuse_other_than_two(study: StudyConfig) -> None:
    """Refuse the paper's accuracies, which are of two options, for any other responses."""
    if other := describe_other_than_two(study.task):
        raise ForetellError(
            f"The paper's accuracies are of two options, and this study {other}. Build the study and assume simulated "
            "participants (--mixture), or use a pilot (--pilot)."
        )


def describe_other_than_two(task: Task) -> str:
    """Say what a study asks for instead of one of two options; empty where it is that."""
    if not task.is_scored:
        return "asks for ratings, of which none is right or wrong"
    if task.of_units:
        return "asks about units"
    if task.of_attributes:
        return "asks about attributes"
    if task.place is not None:
        return "asks for a place"
    return f"has {task.options}" if task.has_several else ""
