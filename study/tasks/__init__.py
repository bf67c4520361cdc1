"""The tasks of the experiment. A task is one file and one line of this table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.registry import Registry
from study.tasks.task import Task

TASKS = Registry(
    "task",
    {
        "predict": "study.tasks.predict:TASK",
        "accept_reject": "study.tasks.accept_reject:TASK",
        "agreement": "study.tasks.agreement:TASK",
        "reliance": "study.tasks.reliance:TASK",
        "reliance_one_step": "study.tasks.reliance_one_step:TASK",
    },
    "foretell.tasks",
)
DEFAULT_TASK = "predict"
"""The task of a study that names none, and of all that were frozen before there were others."""


def find_task(settings: Mapping[str, Any]) -> Task:
    """Return the task that the settings of a study name under ``[study]``, frozen or not.

    Raises
    ------
    ForetellError
        There is no such task here.
    """
    identity = settings.get("study")
    name = identity.get("task", DEFAULT_TASK) if isinstance(identity, Mapping) else DEFAULT_TASK
    task: Task = TASKS[str(name)]
    return task
