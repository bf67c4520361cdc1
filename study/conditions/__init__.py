"""What each condition shows. A condition is one file and one line of this table."""

from __future__ import annotations

from core.registry import Registry

CONDITIONS = Registry(
    "condition",
    {
        "none": "study.conditions.none:CONDITION",
        "saliency": "study.conditions.saliency:CONDITION",
        "examples": "study.conditions.examples:CONDITION",
        "both": "study.conditions.both:CONDITION",
    },
)
