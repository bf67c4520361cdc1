"""The conditions of the experiment. A condition is one file and one line of this table."""

from __future__ import annotations

from core.names import format_name, lower_first
from core.registry import Registry

CONDITIONS = Registry(
    "condition",
    {
        "none": "study.conditions.none:CONDITION",
        "saliency": "study.conditions.saliency:CONDITION",
        "examples": "study.conditions.examples:CONDITION",
        "both": "study.conditions.both:CONDITION",
        "random_maps": "study.conditions.random_maps:CONDITION",
        "reinitialised_maps": "study.conditions.reinitialised_maps:CONDITION",
        "wrong_examples": "study.conditions.wrong_examples:CONDITION",
        "influence_examples": "study.conditions.influence_examples:CONDITION",
        "nearest_examples": "study.conditions.nearest_examples:CONDITION",
        "mapped_examples": "study.conditions.mapped_examples:CONDITION",
        "concepts": "study.conditions.concepts.condition:CONDITION",
        "prototypes": "study.conditions.prototypes.condition:CONDITION",
        "x_features": "study.conditions.x_features.condition:CONDITION",
        "rules": "study.conditions.rules.condition:CONDITION",
        "class_maps": "study.conditions.class_maps:CONDITION",
        "uncertainty": "study.conditions.uncertainty.condition:CONDITION",
        "counterfactual": "study.conditions.counterfactual:CONDITION",
    },
    "foretell.conditions",
)

ORDER_MARK = " > "
"""Between the conditions of an order, in studies in which each participant sees all of them."""
LABELS = {
    "none": "No explanation",
    "saliency": "Saliency maps",
    "both": "Both explanations",
    "class_maps": "A heatmap of each class",
}
"""In words, where the name says too little; the others are read as `format_condition` writes them."""


def format_condition(name: str) -> str:
    """Write a condition's name in words, the same on every page: ``"none"`` -> ``"No explanation"``.

    Of an order of conditions, each of them: ``"none > both"`` -> ``"No explanation, then both explanations"``.
    """
    first, *others = (LABELS.get(one) or format_name(one) for one in name.split(ORDER_MARK))
    return ", then ".join([first, *map(lower_first, others)])


def name_place(place: str) -> str:
    """Name what participants are allocated to, for a heading: a condition, or an order of all of them."""
    return "Order of conditions" if ORDER_MARK in place else "Condition"


def placebos() -> tuple[str, ...]:
    """List the conditions whose explanations say nothing about the AI's prediction."""
    return tuple(name for name, condition in CONDITIONS.usable() if condition.placebo)


def list_separate_conditions() -> tuple[str, ...]:
    """List the conditions outside the two factors: placebos, and those that explain by something else."""
    return tuple(name for name, condition in CONDITIONS.usable() if condition.is_separate)
