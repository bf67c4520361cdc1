"""TOML files that a user writes, checked as a whole: every fault at once, each with its place and the remedy."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from core.errors import ForetellError

Checked = TypeVar("Checked", bound=BaseModel)


def load_toml(path: Path, model: type[Checked]) -> Checked:
    """Read a file as `model` defines it.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ForetellError
        Not valid TOML, or wrong values: every fault, one line each.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, a number too long, lists too deep
        raise ForetellError(f"{path} is not valid TOML: {error}. Correct that line.") from None
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ForetellError(
            f"{path} cannot be read ({error.strerror}). Give this user permission to read it."
        ) from None
    try:
        return model.model_validate(content)
    except ValidationError as error:
        quoting = not model.model_config.get("hide_input_in_errors", False)
        faults = "\n".join(f"  {_fault(fault)}" for fault in error.errors(include_input=quoting))
        count = error.error_count()
        raise ForetellError(f"{path} has {count} {'error' if count == 1 else 'errors'}:\n{faults}") from None


def _fault(fault: Any) -> str:
    where = ".".join(str(part) for part in fault["loc"]) or "the file"
    what = fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "extra_forbidden":
        what = "unknown key; remove it or correct its spelling"
    elif fault["type"] == "missing":
        what = "is missing; add it"
    elif "input" in fault and not fault["type"].startswith("value_error"):
        what = f"{what} (it is {fault['input']!r})"
    return f"{where}: {what}"
