"""Conditions that show examples of their own in the places of the study's examples: those of another policy."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from study.bundle import ConditionAssets, Trial, significant
from study.conditions.condition import Condition, ShownAssets

if TYPE_CHECKING:
    from study.conditions.making import Studio, TrialMaterial


def make_policy_condition(name: str, policy: str) -> Condition:
    """Make the condition that shows the examples which a teaching policy chooses for each trial.

    Everything else is as in the condition ``examples``: the trials, the pool, two examples of each option, the words.
    """

    return Condition(
        name,
        shows_saliency=False,
        shows_examples=True,
        shown=partial(arrange_own_examples, name=name),
        make=partial(draw_own_examples, name=name),
        other=True,
        policy=policy,
    )


def arrange_own_examples(trial: Trial, name: str) -> ShownAssets:
    """Return the image, and the examples of the condition ``name`` in their places."""
    return ShownAssets(trial.assets.target, None, dict(trial.assets.by_condition[name].examples))


def draw_own_examples(studio: Studio, material: TrialMaterial, name: str) -> ConditionAssets:
    """Draw the examples chosen for the condition ``name``, the first half beneath the AI's prediction."""
    chosen = material.own_examples[name]
    drawn = tuple(studio.write(studio.draw_pool_image(i)) for i in chosen.indices)
    one, other = material.options
    half = len(drawn) // 2
    return ConditionAssets(
        examples={one: drawn[:half], other: drawn[half:]},
        sources=tuple(studio.pool.ids[i] for i in chosen.indices),
        gain=significant(chosen.gain),
    )
