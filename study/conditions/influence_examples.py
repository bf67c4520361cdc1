"""The image, and the examples of each option with the most helpful influence on the AI's prediction."""

from __future__ import annotations

from study.conditions.own_images import show_own

CONDITION = show_own("influence_examples", policy="influence", other=True)
