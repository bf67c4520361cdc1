"""A method's declared parameters: its keyword-only arguments with their types and defaults.

One declaration serves the command line, the pages' forms and the study file. What a parameter means is said in the
section ``Parameters`` of the method's docstring (numpydoc), or, where several methods share it, next to its type:
``Fill = Annotated[Literal["mean", "black"], "Colour of ..."]``.
"""

from __future__ import annotations

import difflib
import inspect
import re
import typing
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from core.errors import ForetellError

NOT_PARAMETERS = {"generator", "progress", "references", "prior", "records"}
"""Arguments from Python alone: no form, command line or study file contains a generator or tensors."""
FORMER = {"pictures": "images"}
"""Names of parameters in version 0.2; they work until the next release."""

_SECTION = re.compile(r"^Parameters *\n-+ *\n(.*?)(?=^\S[^\n]*\n-+ *$|\Z)", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"^(\S.*)\n((?:[ \t]+\S.*(?:\n|\Z))+)", re.MULTILINE)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a method: ``choices`` for a Literal, else None; ``help`` says what it means, or is empty."""

    name: str
    kind: type
    default: Any
    choices: tuple[str, ...] | None
    help: str = ""


def join_signatures(common: Callable[..., Any], function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a frame's ``__call__`` with the keyword-only arguments of a function in its place."""
    frame = inspect.signature(common)
    shared = [p for p in frame.parameters.values() if p.name != "self" and p.kind is not p.VAR_KEYWORD]
    own = [p for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
    return inspect.Signature([*shared, *own], return_annotation=frame.return_annotation)


def list_parameters(method: Callable[..., Any]) -> tuple[Parameter, ...]:
    """List the parameters that ``method`` takes beyond the common ones."""
    hints = typing.get_type_hints(method, include_extras=True)
    described = read_descriptions(inspect.getdoc(method) or "")
    parameters = []
    for name, argument in inspect.signature(method).parameters.items():
        if argument.kind is not inspect.Parameter.KEYWORD_ONLY or name in NOT_PARAMETERS:
            continue
        hint, shared = split_hint(hints[name])
        choices = typing.get_args(hint) if typing.get_origin(hint) is Literal else None
        meaning = described.get(name, shared)
        parameters.append(Parameter(name, str if choices else hint, argument.default, choices, meaning))
    return tuple(parameters)


def split_hint(hint: Any) -> tuple[Any, str]:
    """Return a type without its annotations, and the first of them that is a text, or an empty one."""
    if typing.get_origin(hint) is not Annotated:
        return hint, ""
    kind, *notes = typing.get_args(hint)
    return kind, next((note for note in notes if isinstance(note, str)), "")


def read_descriptions(documentation: str) -> dict[str, str]:
    """Read what the section ``Parameters`` of a docstring (numpydoc) says of each parameter, as plain text.

    Of a long description, the first paragraph is read.
    """
    section = _SECTION.search(documentation)
    described: dict[str, str] = {}
    for names, text in _ENTRY.findall(section[1] if section else ""):
        plain = " ".join(text.replace("`", "").split())
        described |= {name.strip(" *"): plain for name in names.partition(":")[0].split(",")}
    return described


def summary(method: Callable[..., Any]) -> str:
    """Return the first sentence of the method's documentation."""
    return (inspect.getdoc(method) or "").split("\n\n")[0].replace("\n", " ")


def parse_parameters(method: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``given`` (texts or values) as the types ``method`` declares.

    Raises
    ------
    ForetellError
        A name it does not declare (with the nearest), one without a default that is not given, or a value that does
        not fit.
    """
    known = {parameter.name: parameter for parameter in list_parameters(method)}
    given = {_present_name(name, known): value for name, value in given.items()}
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"Did you mean {near[0]!r}?" if near else f"It takes: {', '.join(known) or 'none'}."
            raise ForetellError(f"{method.__name__} has no parameter {name!r}. {hint}")
    for name, parameter in known.items():
        if parameter.default is inspect.Parameter.empty and name not in given:
            raise ForetellError(f"{method.__name__} needs the parameter {name!r}: give it.")
    return {name: _value(known[name], value) for name, value in given.items()}


def _present_name(name: str, known: Collection[str]) -> str:
    """Return what a parameter of a former version is called now; any other name as it is."""
    present = FORMER.get(name)
    if present is None or name in known or present not in known:
        return name
    warnings.warn(f"{name!r} is now called {present!r}; the old name will be removed.", FutureWarning, stacklevel=3)
    return present


def _value(parameter: Parameter, value: Any) -> Any:
    if parameter.choices is not None:
        if value not in parameter.choices:
            raise ForetellError(f"{parameter.name}={value!r}: choose one of {', '.join(parameter.choices)}.")
        return value
    try:
        return parameter.kind(value)
    except (TypeError, ValueError):
        raise ForetellError(f"{parameter.name}={value!r} is not a {parameter.kind.__name__}.") from None
