"""The section of the study file for tasks whose responses are places, and what does not go with them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from study.plan.procedure import Keys, Procedure, Section
from study.tasks.task import Task


class Place(Section):
    """``[place]``: of the tasks ``localise`` and ``highlight``, which region of a heatmap participants are to find.

    It is the smallest set of cells of the image that holds this ``share`` of the heatmap's positive evidence.
    """

    share: Annotated[float, Field(gt=0, lt=1)] = 0.5


def refuse_unplaced(task: Task, place: Place, procedure: Procedure) -> None:
    """Refuse what does not go with places, and the section where the task asks for none, as a ValueError."""
    if task.place is None:
        if place != Place():
            raise ValueError(f"place: the task {task.name!r} asks for no place. Remove the section.")
        return
    if procedure.blocks is not None:
        raise ValueError(f"blocks: {task.name!r} seals heatmaps, which training would show. Remove the section.")
    if procedure.pacing.catch:
        raise ValueError(
            f"pacing.catch: an attention check asks for an option, and the task {task.name!r} has none. Set it to 0."
        )
    if procedure.keys != Keys():
        raise ValueError(f"keys: the task {task.name!r} has the arrow keys and Enter. Remove the section.")
