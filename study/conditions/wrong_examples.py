"""Placebo: the image, and for each option examples of another category."""

from __future__ import annotations

from study.conditions.own_images import show_own

CONDITION = show_own("wrong_examples", placebo=True)
