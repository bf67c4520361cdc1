"""What the study file allows at each place: its type, limits, choices and default."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from core.parameters import Parameter
from study.plan.config import StudyConfig

TYPES = {int: "integer", float: "number", bool: "boolean", str: "string"}


class FieldRule(NamedTuple):
    """What a place may hold; ``kind`` is a type of JSON Schema, ``optional`` says that it may be left empty."""

    kind: str
    default: Any = None
    choices: tuple[Any, ...] = ()
    least: float | None = None
    most: float | None = None
    optional: bool = False


@cache
def rule_at(place: str) -> FieldRule:
    """Return the rule of a place of the study file, such as ``trials.per_type``."""
    whole = StudyConfig.model_json_schema()
    rule: dict[str, Any] = whole
    for key in place.split("."):
        rule = _resolve(whole, rule)["properties"][key]
    resolved = _resolve(whole, rule)
    return FieldRule(
        resolved.get("type", "string"),
        rule.get("default"),
        tuple(resolved.get("enum", ())),
        resolved.get("minimum", resolved.get("exclusiveMinimum")),
        resolved.get("maximum", resolved.get("exclusiveMaximum")),
        any(one.get("type") == "null" for one in rule.get("anyOf", ())),
    )


def rule_of(parameter: Parameter) -> FieldRule:
    """Return the rule of a parameter that a heatmap method declares."""
    return FieldRule(TYPES.get(parameter.kind, "string"), parameter.default, tuple(parameter.choices or ()))


def _resolve(whole: dict[str, Any], rule: dict[str, Any]) -> dict[str, Any]:
    """Follow a reference; of several alternatives, take the first that is not null."""
    while "$ref" in rule or "anyOf" in rule:
        if "anyOf" in rule:
            rule = next(one for one in rule["anyOf"] if one.get("type") != "null")
        else:
            rule = whole["$defs"][rule["$ref"].rpartition("/")[2]]
    return rule
