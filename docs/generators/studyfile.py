"""The page ``docs/reference/study-file.md``: every table and key of a study file, from the pydantic models."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from generators.markdown import escape_cell, format_table
from study.plan.config import StudyConfig
from study.plan.texts import DEFAULTS
from study.tasks import TASKS
from study.tasks.task import Task

HEAD = """\
# Study file

<!-- Written by `python docs/generate.py` from the models that check a study file. Do not edit by hand. -->

A study file is TOML. It is checked as a whole before anything runs, and every error is reported at once. Keys without
a default are required; a key that does not exist is an error. A complete example is `data/studies/demo.toml`; the
[guide](../how-to/own-study.md) explains the order of work. [`[trials.strata]`](../how-to/spread-targets.md) and
[`[sets.*]`](../how-to/add-a-dataset.md) take further keys, those of the measure and of the image set.
"""

TEXTS = """\
## `[texts]`

Texts of the experiment that replace the defaults of the study's language. The keys:
"""


def render_page() -> str:
    """Render the whole page."""
    parts = [HEAD, "## Top level", "", *_rows(StudyConfig), ""]
    for path, model in _sections(StudyConfig, ""):
        parts += [f"## `{path}`", "", _description(model), "", *_rows(model), ""]
    keys = ", ".join(f"`{key}`" for key in DEFAULTS)
    others = [_describe_own_keys(task) for task in TASKS.values() if task.texts]
    return "\n".join([*parts, TEXTS, keys, "", *others])


def _describe_own_keys(task: Task) -> str:
    own = ", ".join(f"`{key}`" for key in next(iter(task.texts.values())) if key not in DEFAULTS)
    return f"Only with the task `{task.name}`: {own}.\n"


def _sections(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, type[BaseModel]]]:
    """List every table below a model with its TOML header, depth first."""
    for name, field in model.model_fields.items():
        inner, repeated = _table_of(field.annotation)
        if inner is None:
            continue
        path = f"{prefix}{name}"
        yield (f"[[{path}]]" if repeated else f"[{path}]"), inner
        yield from _sections(inner, f"{path}.")


def _table_of(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """Return the model that a field holds, and whether as an array of tables."""
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return annotation, False
    inside = [_table_of(part) for part in get_args(annotation)]
    models = [model for model, _ in inside if model is not None]
    return (models[0], get_origin(annotation) is tuple) if models else (None, False)


def _description(model: type[BaseModel]) -> str:
    """Return the model's docstring without the header that it repeats."""
    text = inspect.cleandoc(model.__doc__ or "").replace("``", "`")
    head, colon, rest = text.partition(": ")
    text = rest[:1].upper() + rest[1:] if colon and head.startswith("`[") and "\n" not in head else text
    return text.removeprefix("`[analysis]`.").strip()


def _rows(model: type[BaseModel]) -> list[str]:
    fields = {name: f for name, f in model.model_fields.items() if _table_of(f.annotation)[0] is None}
    schema = model.model_json_schema()
    described = any(field.description for field in fields.values())
    rows = []
    for name, field in fields.items():
        row = [f"`{name}`", describe_type(schema["properties"][name]), _default(field)]
        rows.append([*row, escape_cell(field.description or "")] if described else row)
    head = ["key", "value", "default", *(["meaning"] if described else [])]
    return format_table(head, rows) if rows else []


def describe_type(schema: dict[str, Any]) -> str:
    """Describe a JSON schema in words: the type, the choices, the bounds."""
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{json.dumps(value)}`" for value in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        parts = [describe_type(part) for part in schema["anyOf"] if part.get("type") != "null"]
        return " or ".join(dict.fromkeys(parts))
    kind = {"integer": "whole number", "number": "number", "string": "text", "boolean": "`true` or `false`"}
    if schema.get("type") == "array":
        return f"list of {describe_type(schema['items'])}" if schema.get("items") else "list"
    if schema.get("type") == "object":
        return "table"
    return kind.get(schema.get("type", ""), "any") + _bounds(schema)


def _bounds(schema: dict[str, Any]) -> str:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    bounds = [f"{sign} {schema[key]:g}" for key, sign in signs.items() if key in schema]
    bounds += [f"of the form `{schema['pattern']}`".replace("|", "\\|")] if "pattern" in schema else []
    return f" ({', '.join(bounds)})" if bounds else ""


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel) or (isinstance(value, tuple) and any(isinstance(v, BaseModel) for v in value)):
        return "see above"
    if value is None:
        return ""
    return escape_cell(f"`{_toml(value)}`")


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
