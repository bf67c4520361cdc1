"""``[units]`` of the study file, for tasks that ask about units of the network, and what does not go with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from study.plan.procedure import Section
from study.tasks import TASKS
from study.tasks.task import Task

RANDOM = "(1 | participant) + (examples || category) + (examples || item)"
"""Random effects that the test of the references needs where each participant is in one condition."""
OCCLUDED = 0.4
"""Side of the square that covers a place of an image, as a share of the image's."""
WITHIN_RANDOM = "(examples || participant) + (examples || category) + (examples || item)"
"""Those where each participant sees every condition."""
NAMED, NAMED_WITHIN = "(1 | participant) + (examples || category)", "(examples || participant) + (examples || category)"
"""The same where units are named: a unit has one trial."""


class Units(Section):
    """``[units]``: of the tasks ``unit_choice``, ``unit_counterfactual`` and ``name``, which units are asked about.

    ``layer`` is the name of a module of the network; a unit is one of its channels, and its activation the mean over
    all places. ``channels`` are a number, drawn at random, or a list. Each has ``per_unit`` trials; in each, the two
    images are among those of the standard set that activate the unit most and least, or one of those that activate it
    most, with a square over each of two places. ``references`` are 1, 4 or 9 images of the pool that activate it most,
    and as many that activate it least. In ``name``, a unit has one trial, which shows its references.
    """

    layer: str = ""
    channels: Annotated[int, Field(ge=1, le=1000)] | tuple[Annotated[int, Field(ge=0)], ...] = 8
    per_unit: Annotated[int, Field(ge=1, le=20)] = 2
    references: Literal[1, 4, 9] = 9

    @field_validator("channels")
    @classmethod
    def _check_channels(cls, value: int | tuple[int, ...]) -> int | tuple[int, ...]:
        if isinstance(value, tuple) and (not value or len(set(value)) < len(value)):
            raise ValueError("name at least one channel, each once, or give their number.")
        return value

    @property
    def count(self) -> int:
        """Number of units."""
        return self.channels if isinstance(self.channels, int) else len(self.channels)

    @property
    def most(self) -> int:
        """Number of trials."""
        return self.count * self.per_unit


def refuse_unasked(task: Task, units: Units, unused: Sequence[str]) -> None:
    """Refuse what does not go with units, and the section where the task asks about none, as a ValueError.

    Parameters
    ----------
    unused
        The sections of the study file, or settings, that only trials about a prediction have.
    """
    if not task.of_units:
        if units != Units():
            raise ValueError(f"units: the task {task.name!r} asks about no units. Remove the section.")
        return
    if not units.layer:
        raise ValueError(
            f"units.layer: the task {task.name!r} needs the layer whose units it asks about, by its name in the "
            "network. The page Units lists them."
        )
    if unused:
        raise ValueError(
            f"{unused[0]}: the task {task.name!r} asks about units, which [units] sets, and not about predictions. "
            "Remove it."
        )
    if task.of_units == "names" and units.per_unit != 1:
        raise ValueError(f"units.per_unit: in the task {task.name!r} a unit has one trial. Set it to 1, or remove it.")


def plan_units(content: Any) -> Any:
    """Plan models without trial types in a study file about units, unless it plans its own; a name needs one trial."""
    if not isinstance(content, dict) or not asks_units(content):
        return content
    allocation, plan = content.get("allocation"), content.get("analysis", {})
    if not isinstance(plan, dict):
        return content
    within = isinstance(allocation, dict) and allocation.get("within") is True
    is_named = TASKS[content["study"]["task"]].of_units == "names"
    random = (NAMED_WITHIN if within else NAMED) if is_named else (WITHIN_RANDOM if within else RANDOM)
    models = {"null": f"1 + {random}", "explanation": f"examples + {random}"}
    units = content.get("units")
    one = {"units": {"per_unit": 1, **units}} if is_named and isinstance(units, dict) else {}
    return {**content, **one, "analysis": {"models": models, **plan}}


def asks_units(content: Mapping[str, Any]) -> bool:
    """Say whether a study file's content asks about units."""
    study = content.get("study")
    name = study.get("task") if isinstance(study, Mapping) else None
    return isinstance(name, str) and name in TASKS and bool(TASKS[name].of_units)
