"""What is wrong in a file that a user wrote, in plain English: values by their place, and text that is no TOML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

WHOLE, NUMBER, LIST, TABLE = "a whole number", "a number", "a list in square brackets", "a table"
KINDS = {
    "int_parsing": WHOLE,
    "int_type": WHOLE,
    "int_from_float": WHOLE,
    "int_parsing_size": "a smaller whole number",
    "float_parsing": NUMBER,
    "float_type": NUMBER,
    "finite_number": "a finite number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "text in quotation marks",
    "greater_than": "greater than {gt:.10g}",
    "greater_than_equal": "at least {ge:.10g}",
    "less_than": "less than {lt:.10g}",
    "less_than_equal": "at most {le:.10g}",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "list_type": LIST,
    "tuple_type": LIST,
    "dict_type": TABLE,
    "model_type": TABLE,
    "model_attributes_type": TABLE,
}
"""What a value must be, by the type of Pydantic's error and the limits in its context."""
LENGTHS = {"too_short": ("at least", "min_length"), "too_long": ("at most", "max_length")}
NO_VALUE = re.compile(r"^[^#\"']*=\s*(#.*)?$")
"""A line on which nothing follows the equals sign."""
POSITION = re.compile(r"\.? \(?at line (\d+),? col(?:umn)? (\d+)\)?$")
"""Where an error of `tomllib` or tomlkit is, at the end of its message."""


class Fault(NamedTuple):
    """What is wrong at a dotted place of a file, with the remedy; the place is empty where it is the whole file."""

    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.place or 'the file'}: {self.text}"


def describe_faults(error: ValidationError, content: Mapping[str, Any], *, quoting: bool) -> list[Fault]:
    """Describe everything that is wrong in the content of a file; ``quoting`` repeats the wrong values."""
    places: dict[str, list[Any]] = {}
    errors = error.errors(include_input=quoting)
    for one in errors:
        if not _follows_from_another(one, errors):
            places.setdefault(_find_place(one, content), []).append(one)
    return [Fault(place, text) for place, together in places.items() for text in _describe(together)]


def describe_syntax(error: Exception, text: str) -> str:
    """Say in one sentence, with its line, why a text is not valid TOML."""
    message = str(error)
    position = POSITION.search(message)
    lines = text.splitlines()
    number = int(position[1]) if position else len(lines)  # at the end of the document there is no position
    if 0 < number <= len(lines) and NO_VALUE.match(lines[number - 1]):
        return f"Line {number}: a value is missing after =."
    if position is None:
        return f"{message.rstrip('.')}."
    return f"Line {number}, column {position[2]}: {message[: position.start()]}."


def _follows_from_another(fault: Any, errors: Iterable[Any]) -> bool:
    """Whether a list seems too short only because entries of it are wrong, each a fault of its own."""
    where = fault["loc"]
    return fault["type"] in LENGTHS and any(
        other["loc"][: len(where)] == where and len(other["loc"]) > len(where) for other in errors
    )


def _find_place(fault: Any, content: Any) -> str:
    """Return the dotted place of a fault, without the names that Pydantic gives to alternative types."""
    parts = []
    for part in fault["loc"]:
        is_here = part in content if isinstance(content, Mapping) else _is_index(part, content)
        if is_here:
            content = content[part]
        elif not (fault["type"] == "missing" and part == fault["loc"][-1]):
            continue
        parts.append(str(part))
    return ".".join(parts)


def _is_index(part: int | str, content: Any) -> bool:
    return isinstance(part, int) and isinstance(content, list | tuple) and part < len(content)


def _describe(faults: list[Any]) -> list[str]:
    """Describe the faults at one place: what the value must be in one text, whatever the number of alternatives."""
    kinds = dict.fromkeys(KINDS[one["type"]].format(**one.get("ctx", {})) for one in faults if one["type"] in KINDS)
    joined = [f"must be {' or '.join(kinds)}{_quote(faults)}"] if kinds else []
    return joined + [_describe_other(one) for one in faults if one["type"] not in KINDS]


def _describe_other(fault: Any) -> str:
    kind = fault["type"]
    if kind == "extra_forbidden":
        return "unknown key; remove it or correct its spelling"
    if kind == "missing":
        return "is missing; add it"
    if kind in LENGTHS:
        words, name = LENGTHS[kind]
        count = fault["ctx"][name]
        return f"must have {words} {count} {'entry' if count == 1 else 'entries'}{_quote([fault])}"
    message: str = fault["msg"].removeprefix("Value error, ")
    return message if kind.startswith("value_error") else f"{message}{_quote([fault])}"


def _quote(faults: list[Any]) -> str:
    given = next((one["input"] for one in faults if "input" in one), None)
    return "" if given is None else f" (it is {given!r})"
