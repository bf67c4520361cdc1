"""Placebo: the image, and for each option examples of another category."""

from __future__ import annotations

from typing import TYPE_CHECKING

from study.bundle import ConditionAssets, Trial
from study.conditions.condition import Condition, ShownAssets
from study.conditions.policies import arrange_own_examples, draw_own_examples

if TYPE_CHECKING:
    from study.conditions.making import Studio, TrialMaterial


def arrange_assets(trial: Trial) -> ShownAssets:
    """Return the assets in their places."""
    return arrange_own_examples(trial, "wrong_examples")


def make(studio: Studio, material: TrialMaterial) -> ConditionAssets:
    """Put pool images of two other categories beneath the options."""
    return draw_own_examples(studio, material, "wrong_examples")


CONDITION = Condition(
    "wrong_examples", shows_saliency=False, shows_examples=True, shown=arrange_assets, make=make, placebo=True
)
