"""How a study file in the workspace's ``studies`` names the workspace's image sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.shared import cache

UP = ".."
"""From the folder of study files to the workspace."""


def image_settings(name: str) -> dict[str, Any]:
    """Return the settings of an image set of the workspace."""
    return {"set": "folder", "path": f"{UP}/{cache.find_sets_folder().name}/{name}"}


def describe_set(settings: Mapping[str, Any]) -> str:
    """Describe an image set of a study file in one line."""
    rest = ", ".join(f"{key} {value}" for key, value in settings.items() if key != "set")
    return f"{settings.get('set', '?')}: {rest}" if rest else str(settings.get("set", "?"))
