"""Conditions that show images of their own in the places of the study's examples."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from study.bundle import ConditionAssets, Trial, significant
from study.conditions.condition import Condition, MakeAssets, ShownAssets

if TYPE_CHECKING:
    from study.conditions.making import Studio, TrialMaterial


def show_own(name: str, **traits: Any) -> Condition:
    """Return the condition that shows images of its own in the places of the study's examples.

    Unless ``make`` makes others, they are the examples chosen for it; the trials, the pool, two examples of each option
    and the words are those of the condition ``examples``. ``traits`` are arguments of `Condition`.
    """
    traits = {"make": partial(draw_own_examples, name=name)} | traits
    shown = partial(arrange_own_examples, name=name)
    return Condition(name, shows_saliency=False, shows_examples=True, shown=shown, **traits)


def explain_names(name: str, make: MakeAssets, **traits: Any) -> Condition:
    """Return the condition that explains each option by an image above its name, with a legend of its own.

    ``traits`` are arguments of `Condition`.
    """
    words = {"examples_legend": f"{name}_legend", "example_examples": f"example_{name}"}
    return show_own(name, make=make, other=True, words=words, **traits)


def arrange_own_examples(trial: Trial, name: str) -> ShownAssets:
    """Return the image, and the examples of the condition ``name`` in their places."""
    return ShownAssets(trial.assets.target, None, dict(trial.assets.by_condition[name].examples))


def draw_own_examples(studio: Studio, material: TrialMaterial, name: str) -> ConditionAssets:
    """Draw the examples chosen for the condition ``name``, the first half beneath the AI's prediction."""
    chosen = material.own_examples[name]
    drawn = tuple(studio.write(studio.draw_pool_image(i)) for i in chosen.indices)
    one, other, *_ = material.options
    half = len(drawn) // 2
    return ConditionAssets(
        examples={one: drawn[:half], other: drawn[half:]},
        sources=tuple(studio.pool.ids[i] for i in chosen.indices),
        gain=significant(chosen.gain),
    )
