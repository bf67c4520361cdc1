"""What a study asks, and what goes with it: tasks about predictions of the AI, and tasks about units of the network."""

from __future__ import annotations

from dataclasses import replace

from dashboard.design.editor import Editor
from dashboard.design.fields import Setting
from study.conditions import CONDITIONS
from study.tasks import TASKS


def asks_units(editor: Editor) -> bool:
    """Say whether participants are asked about units."""
    name = editor.value("study.task")
    return name in TASKS and bool(TASKS[name].of_units)


def offer_tasks(editor: Editor, setting: Setting) -> Setting:
    """Return the setting of the task with those that the study can change to: of units, or of predictions.

    The two have other trials, images and conditions, so a study about the other begins with a template.
    """
    of_units = asks_units(editor)
    return replace(setting, options=tuple(name for name, task in TASKS.usable() if bool(task.of_units) == of_units))


def list_conditions(editor: Editor) -> list[str]:
    """List the conditions that the study may have; about units, those that go with the task."""
    if not asks_units(editor):
        return [*CONDITIONS]
    task = TASKS[editor.value("study.task")]
    return [name for name, condition in CONDITIONS.usable() if not task.refuse(condition)]
