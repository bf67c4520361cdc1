"""Scenes drawn again with one thing changed: do(context) and do(object)."""

from __future__ import annotations

from data.scenes.contexts import CONTEXTS
from data.scenes.generator import Scene, render
from data.scenes.shapes import CATEGORIES


def other_contexts(scene: Scene) -> list[Scene]:
    """The same object, pose and light before every other context."""
    return [render(scene.seed, category=scene.label, context=name) for name in CONTEXTS if name != scene.context]


def other_objects(scene: Scene) -> list[Scene]:
    """Every other object in its place: the same context and light behind it."""
    return [render(scene.seed, category=name, context=scene.context) for name in CATEGORIES if name != scene.label]
