"""The tasks of the experiment. A task is one file and one line of this table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.registry import Registry
from study.tasks.task import TWO, Task

TASKS = Registry(
    "task",
    {
        "predict": "study.tasks.predict:TASK",
        "accept_reject": "study.tasks.accept_reject:TASK",
        "agreement": "study.tasks.agreement:TASK",
        "reliance": "study.tasks.reliance:TASK",
        "reliance_one_step": "study.tasks.reliance_one_step:TASK",
        "localise": "study.tasks.localise:TASK",
        "highlight": "study.tasks.highlight:TASK",
        "rating": "study.tasks.rating:TASK",
        "unit_choice": "study.tasks.unit_choice:TASK",
        "unit_counterfactual": "study.tasks.unit_counterfactual:TASK",
        "name": "study.tasks.name:TASK",
        "discover": "study.tasks.discover:TASK",
    },
    "foretell.tasks",
)
DEFAULT_TASK = "predict"
"""The task of a study that names none, and of all that were frozen before there were others."""


def find_task(settings: Mapping[str, Any]) -> Task:
    """Return the task of a study's settings, frozen or not: ``task`` of ``[study]``, and ``options`` and ``levels``
    of ``[trials]``.

    Raises
    ------
    ForetellError
        There is no such task here, or it has no trials with so many options or levels.
    """
    name = _find(settings, "study", "task", DEFAULT_TASK)
    return open_task(name, _find(settings, "trials", "options", TWO), _find(settings, "trials", "levels", None))


def open_task(name: str, options: int = TWO, levels: int | None = None) -> Task:
    """Return the task of a name with so many classes to choose from, or so many levels of its scale.

    Raises
    ------
    ForetellError
        There is none.
    """
    task: Task = TASKS[str(name)]
    return task.with_levels(levels).with_options(options)


def _find(settings: Mapping[str, Any], table: str, key: str, default: Any) -> Any:
    values = settings.get(table)
    return values.get(key, default) if isinstance(values, Mapping) else default
