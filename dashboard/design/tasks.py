"""What a study asks, and what goes with it: tasks about predictions of the AI, units of the network, or attributes."""

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


def asks_attributes(editor: Editor) -> bool:
    """Say whether participants are asked about attributes."""
    name = editor.value("study.task")
    return name in TASKS and TASKS[name].of_attributes


def asks_predictions(editor: Editor) -> bool:
    """Say whether participants are asked about predictions of the AI."""
    return not (asks_units(editor) or asks_attributes(editor))


def offer_tasks(editor: Editor, setting: Setting) -> Setting:
    """Return the setting of the task with those that the study can change to: of predictions, units or attributes.

    They have other trials, images and conditions, so a study about something else begins with a template.
    """
    subject = asks_units(editor), asks_attributes(editor)
    same = (name for name, task in TASKS.usable() if (bool(task.of_units), task.of_attributes) == subject)
    return replace(setting, options=tuple(same))


def list_conditions(editor: Editor) -> list[str]:
    """List the conditions that the study may have; about units or attributes, those that go with the task."""
    if asks_predictions(editor):
        return [*CONDITIONS]
    task = TASKS[editor.value("study.task")]
    return [name for name, condition in CONDITIONS.usable() if not task.refuse(condition)]
