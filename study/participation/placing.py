"""Responses that are places: whether a trial asks for one, and whether a mark is correct by the frozen region."""

from __future__ import annotations

from core.errors import ForetellError
from study.bundle import Manifest, Trial
from study.places.marks import is_right, read_mark
from study.places.region import open_region
from study.store.rows import PlannedRow
from study.tasks import find_task

RIGHT, WRONG = "a", "b"
"""What is stored as the choice of a place."""


def find_choice(manifest: Manifest, planned: PlannedRow, place: str | None) -> str | None:
    """Find the choice that a place is, correct or not; None where the response is no place.

    Raises
    ------
    ForetellError
        There is a place where none is asked for, none where one is, or it cannot be read.
    """
    kind = find_task(manifest.config).place
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


def find_trial(manifest: Manifest, name: str) -> Trial:
    """Find the frozen trial of a planned one."""
    return next(trial for trial in (*manifest.practice, *manifest.trials) if trial.id == name)
