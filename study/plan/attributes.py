"""``[attributes]`` of the study file, of which the task asks which ones the AI uses, and what does not go with it."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, model_validator

from study.attributes.sets import MOST
from study.plan.procedure import Section
from study.tasks import TASKS
from study.tasks.task import Task

COLUMNS = 5
"""Columns of a grid, by the AI's confidence."""
LONGEST = 80
"""Characters of an attribute's name."""
RANDOM = "(trial_type || participant) + (1 | participant:category) + (saliency || category) + (saliency || item)"
"""Random effects that the tests need: whoever takes an attribute for used does so in several trials."""
MODELS = {
    "null": f"trial_type + {RANDOM}",
    "explanation": f"trial_type + saliency + {RANDOM}",
    "interaction": f"trial_type * saliency + {RANDOM}",
}
Name = Annotated[str, Field(max_length=LONGEST)]


class Attributes(Section):
    """``[attributes]``: of the task ``discover``, which attributes of images participants are asked about.

    ``used`` are those that the AI uses and ``unused`` those that it does not, in the words that participants read: the
    researcher knows which, and participants are never told. ``classes`` are the two of the grid; its columns are by the
    AI's confidence in the second. Each of ``trials`` trials has a grid of its own, of so many ``images``, half of each
    class, from the standard set.
    """

    used: tuple[Name, ...] = ()
    unused: tuple[Name, ...] = ()
    classes: tuple[str, ...] = ()
    images: Annotated[int, Field(ge=2 * COLUMNS, le=10 * COLUMNS, multiple_of=COLUMNS)] = 4 * COLUMNS
    trials: Annotated[int, Field(ge=1, le=40)] = 4

    @model_validator(mode="after")
    def _check_names(self) -> Attributes:
        names = [*self.used, *self.unused]
        for name in names:
            if not name.strip() or not name.isprintable():
                raise ValueError(f"the attribute {name!r} has no name that participants can read. Give it words.")
        same = [unicodedata.normalize("NFKC", " ".join(name.split())).casefold() for name in names]
        if twice := next((name for name, key in zip(names, same, strict=True) if same.count(key) > 1), None):
            raise ValueError(f"the attribute {twice!r} is listed twice. Name each once, under used or unused.")
        if len(names) > MOST:
            raise ValueError(f"{len(names)} attributes are listed, and a page has room for {MOST}. Leave some out.")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """Every attribute, by the alphabet, so that their order does not say which are used."""
        return tuple(sorted((*self.used, *self.unused), key=lambda name: (name.casefold(), name)))

    @property
    def is_used(self) -> tuple[bool, ...]:
        """Whether the AI uses each of `names`."""
        return tuple(name in self.used for name in self.names)


def refuse_unlisted(task: Task, attributes: Attributes, unused: Sequence[str]) -> None:
    """Refuse what does not go with attributes, and the section where the task asks about none, as a ValueError.

    Parameters
    ----------
    unused
        The sections of the study file, or settings, that do not go with the task.
    """
    if not task.of_attributes:
        if attributes != Attributes():
            raise ValueError(f"attributes: the task {task.name!r} asks about no attributes. Remove the section.")
        return
    for given, what in ((attributes.used, "used"), (attributes.unused, "unused")):
        if not given:
            other = "does not use" if what == "unused" else "uses"
            raise ValueError(
                f"attributes.{what}: the task {task.name!r} compares attributes that the AI uses with others. List at "
                f"least one that it {other}."
            )
    if len({*attributes.classes}) != len(attributes.classes) or len(attributes.classes) != len(("left", "right")):
        raise ValueError("attributes.classes: name the two classes between which the AI chooses, each once.")
    if unused:
        raise ValueError(
            f"{unused[0]}: the task {task.name!r} asks about attributes, which [attributes] lists, and has no use for "
            "it. Remove it."
        )


def plan_attributes(content: Any) -> Any:
    """Plan models of used and unused attributes in a study file about attributes, unless it plans its own."""
    if not isinstance(content, dict) or not asks_attributes(content):
        return content
    plan = content.get("analysis", {})
    return {**content, "analysis": {"models": MODELS, **plan}} if isinstance(plan, dict) else content


def asks_attributes(content: Mapping[str, Any]) -> bool:
    """Say whether a study file's content asks about attributes."""
    study = content.get("study")
    name = study.get("task") if isinstance(study, Mapping) else None
    return isinstance(name, str) and name in TASKS and TASKS[name].of_attributes
