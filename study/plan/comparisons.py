"""Which conditions of a study are compared unless its plan says otherwise."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from study.bundle import OF_ATTRIBUTES, TRIAL_TYPES
from study.conditions import CONDITIONS, list_separate_conditions
from study.plan.attributes import asks_attributes
from study.plan.preregistration import FACTORIAL_CONDITIONS
from study.plan.units import asks_units


def list_factorial_comparisons(conditions: Collection[str]) -> list[tuple[str, str]]:
    """List the pairs of each of the two factors' conditions and the first of them that the study has."""
    first, *others = [name for name in FACTORIAL_CONDITIONS if name in conditions] or [""]
    return [(name, first) for name in others]


def list_separate_comparisons(conditions: Collection[str]) -> list[tuple[str, str]]:
    """List the pairs of which one condition is outside the two factors and whose other one the study has.

    The study's explanation against its placebo and against examples of another policy, else these against the image
    alone; any other explanation against the image alone.
    """
    pairs = []
    for name in (one for one in list_separate_conditions() if one in conditions):
        condition = CONDITIONS[name]
        true = "saliency" if condition.shows_saliency else "examples"
        pairs.append((name, "none") if condition.explains_otherwise or true not in conditions else (true, name))
    return [pair for pair in pairs if {*pair} <= {*conditions}]


def plan_contrasts(content: Any) -> Any:
    """Plan the contrasts of the conditions that a study file has, unless it plans its own.

    Those of predictions are of each trial type, and those of attributes of used and of unused ones.
    """
    if not isinstance(content, dict):
        return content
    conditions, plan = content.get("conditions"), content.get("analysis", {})
    if not isinstance(plan, dict) or "contrasts" in plan or not isinstance(conditions, list | tuple):
        return content
    names = [name for name in conditions if isinstance(name, str)]
    pairs = list_factorial_comparisons(names) + list_separate_comparisons(names)
    types = OF_ATTRIBUTES if asks_attributes(content) else TRIAL_TYPES
    kinds = [{}] if asks_units(content) else [{"trial_types": [kind]} for kind in types]
    planned = [{"more": more, "less": less, **kind} for kind in kinds for more, less in pairs]
    return {**content, "analysis": {**plan, "contrasts": planned}} if planned else content
