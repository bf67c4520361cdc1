"""Placebo: the image, and for each option examples of another category."""

from __future__ import annotations

from functools import partial

from study.conditions.condition import Condition
from study.conditions.policies import arrange_own_examples, draw_own_examples

NAME = "wrong_examples"

CONDITION = Condition(
    NAME,
    shows_saliency=False,
    shows_examples=True,
    shown=partial(arrange_own_examples, name=NAME),
    make=partial(draw_own_examples, name=NAME),
    placebo=True,
)
