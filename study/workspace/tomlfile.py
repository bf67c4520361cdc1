"""TOML files that a user writes, checked as a whole: every fault at once, each with its place and the remedy."""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from core.errors import ForetellError
from core.text import read_text
from study.workspace.faults import Fault, describe_faults, describe_syntax

Checked = TypeVar("Checked", bound=BaseModel)


def use_present_names(text: str, present_names: Mapping[str, str], *, notice: bool = False) -> str:
    """Replace former names, by patterns of a file's text; a ``notice`` (FutureWarning) names each."""
    for pattern, present in present_names.items():
        former = re.search(pattern, text, re.MULTILINE)
        if former and notice:
            message = f"{former[0]!r} is now called {present!r}; the old name will be removed."
            warnings.warn(message, FutureWarning, stacklevel=4)
        text = re.sub(pattern, present, text, flags=re.MULTILINE)
    return text


def load_toml(
    path: Path,
    model: type[Checked],
    present_names: Mapping[str, str] | None = None,
    context: Mapping[str, bool] | None = None,
) -> Checked:
    """Read a file as `model` defines it in a ``context``, with a notice of each former name.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ForetellError
        Not text, not valid TOML, or wrong values: every fault, one line each.
    """
    text = ""
    try:
        text = read_text(path)
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not TOML, a number too long, lists too deep
        raise ForetellError(f"{path} is not valid TOML. {describe_syntax(error, text)}") from None
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ForetellError(
            f"{path} cannot be read ({error.strerror}). Give this user permission to read it."
        ) from None
    checked, faults = check_content(content, model, context)
    if checked is None:
        listed = "\n".join(f"  {fault}" for fault in faults)
        raise ForetellError(f"{path} has {len(faults)} {'error' if len(faults) == 1 else 'errors'}:\n{listed}")
    use_present_names(text, present_names or {}, notice=True)
    return checked


def check_content(
    content: dict[str, Any], model: type[Checked], context: Mapping[str, bool] | None = None
) -> tuple[Checked | None, list[Fault]]:
    """Check the content of a file; return it as `model`, or None with every fault."""
    try:
        return model.model_validate(content, context=context), []
    except ValidationError as error:
        quoting = not model.model_config.get("hide_input_in_errors", False)
        return None, describe_faults(error, content, quoting=quoting)
