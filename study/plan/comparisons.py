"""Which conditions of a study are compared unless its plan says otherwise."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from study.bundle import TRIAL_TYPES
from study.conditions import CONDITIONS, list_separate_conditions
from study.plan.preregistration import FACTORIAL_CONDITIONS


def list_comparisons(conditions: Collection[str]) -> list[tuple[str, str]]:
    """List the pairs of conditions, the one that is to explain more first.

    Each of the two factors' conditions against the first of them; and those of `list_separate_comparisons`.
    """
    first, *others = [name for name in FACTORIAL_CONDITIONS if name in conditions] or [""]
    return [(name, first) for name in others] + list_separate_comparisons(conditions)


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
    """Plan the contrasts of the conditions that a study file has, for each trial type, unless it plans its own.

    A study of the paper's four conditions keeps the plan's default, which is the same.
    """
    conditions, plan = (
        (content.get("conditions"), content.get("analysis", {})) if isinstance(content, dict) else ((), ())
    )
    if not isinstance(plan, dict) or "contrasts" in plan or not isinstance(conditions, list | tuple):
        return content
    pairs = list_comparisons([name for name in conditions if isinstance(name, str)])
    if not pairs or pairs == [(name, "none") for name in FACTORIAL_CONDITIONS[1:]]:
        return content
    planned = [{"more": more, "less": less, "trial_types": [kind]} for kind in TRIAL_TYPES for more, less in pairs]
    return {**content, "analysis": {**plan, "contrasts": planned}}
