"""Responses that are places or sets of attributes: whether a trial asks for one, and whether it is correct."""

from __future__ import annotations

from core.errors import ForetellError
from study.attributes.sets import find_used, read_set
from study.bundle import Manifest, Trial
from study.places.marks import is_right, read_mark
from study.places.region import open_region
from study.store.rows import PlannedRow
from study.tasks import find_task

RIGHT, WRONG = "a", "b"
"""What is stored as the choice of a place or of a set."""


def find_choice(manifest: Manifest, planned: PlannedRow, place: str | None) -> str | None:
    """Find the choice that a place or a set is, correct or not; None where an option is asked for.

    Raises
    ------
    ForetellError
        There is one where none is asked for, none where one is, or it cannot be read.
    """
    task = find_task(manifest.config)
    if task.of_attributes:
        return _judge_set(find_trial(manifest, planned["item_id"]), place)
    kind = task.place
    if kind is None:
        if place is not None:
            raise ForetellError("This study asks for an option, not for a place on the image.")
        return None
    if place is None:
        raise ForetellError("This study asks for a place on the image: mark it before you respond.")
    region = find_trial(manifest, planned["item_id"]).region
    if region is None:
        raise ForetellError(f"Trial {planned['item_id']!r} was frozen without a region. Build the study again.")
    return RIGHT if is_right(read_mark(kind, place), open_region(region)) else WRONG


def _judge_set(trial: Trial, text: str | None) -> str:
    """Judge a set of attributes: correct where it has all that the AI uses and no other."""
    if text is None:
        raise ForetellError("This study asks for attributes: choose some, or none of them, before you respond.")
    if trial.attributes is None:
        raise ForetellError(f"Trial {trial.id!r} was frozen without attributes. Build the study again.")
    return RIGHT if read_set(text, len(trial.attributes.names)) == find_used(trial.attributes) else WRONG


def find_trial(manifest: Manifest, name: str) -> Trial:
    """Find the frozen trial of a planned one."""
    return next(trial for trial in (*manifest.practice, *manifest.trials) if trial.id == name)
