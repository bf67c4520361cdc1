"""What the page loads and which keys it takes, by what a study asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from study.adaptive.policy import MARK as CHOICE
from study.bundle import Manifest
from study.conditions import CONDITIONS
from study.participation.blocks import MARK
from study.participation.screens import PLACE
from study.plan.procedure import procedure_of
from study.tasks import find_task


def name_part(screen: Mapping[str, Any], manifest: Manifest) -> dict[str, str]:
    """Name the file of the page, in ``dashboard/runner``, that only such trials load; nothing of others.

    Heatmaps of several classes, references of a unit and attributes have their places in every condition of a study:
    what is loaded tells no condition.
    """
    task = find_task(manifest.config)
    if task.of_attributes:
        return {"part": "attributes"}
    if task.of_units:
        return {"part": "name" if task.is_written else "units"}
    parts = {MARK: "reservoir", PLACE: "place", CHOICE: "next"}
    if any(CONDITIONS[name].explains_each_option for name in manifest.conditions):
        parts["options"] = "options"
    return next(({"part": part} for key, part in parts.items() if key in screen), {})


def name_keys(manifest: Manifest) -> dict[str, str]:
    """Name the keys of the option on the left and of the one on the right; more than two have the digits from 1."""
    task = find_task(manifest.config)
    if task.is_confirmed or task.count > len(("left", "right")):
        return {"left": "1", "right": str(task.count)}
    return procedure_of(manifest).keys.model_dump()
