"""The image, and the examples of each option that are nearest to it in the AI's features."""

from __future__ import annotations

from study.conditions.own_images import show_own

CONDITION = show_own("nearest_examples", policy="nearest", other=True)
