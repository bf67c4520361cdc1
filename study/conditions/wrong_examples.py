"""Placebo: the image, and for each option examples of another category."""

from __future__ import annotations

from typing import TYPE_CHECKING

from study.bundle import ConditionAssets, Trial, significant
from study.conditions.condition import Condition, ShownAssets

if TYPE_CHECKING:
    from study.conditions.making import Studio, TrialMaterial


def arrange_assets(trial: Trial) -> ShownAssets:
    """Return the assets in their places."""
    return ShownAssets(trial.assets.target, None, dict(trial.assets.by_condition["wrong_examples"].examples))


def make(studio: Studio, material: TrialMaterial) -> ConditionAssets:
    """Put pool images of two other categories beneath the options."""
    from core.teaching.examples import PER_CATEGORY

    drawn = tuple(studio.write(studio.draw_pool_image(i)) for i in material.wrong_examples)
    one, other = material.options
    return ConditionAssets(
        examples={one: drawn[:PER_CATEGORY], other: drawn[PER_CATEGORY:]},
        sources=tuple(studio.pool.ids[i] for i in material.wrong_examples),
        gain=significant(material.wrong_gain),
    )


CONDITION = Condition(
    "wrong_examples", shows_saliency=False, shows_examples=True, shown=arrange_assets, make=make, placebo=True
)
