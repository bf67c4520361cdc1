"""The methods that a command names, opened, each with its own of the parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.attribution.method import HeatmapMethod
from core.attribution.outside.external import ImageRecord
from core.attribution.outside.folders import HeatmapFolder
from core.attribution.outside.opening import file_name, open_method
from core.errors import ForetellError
from core.parameters import list_parameters, parse_parameters


def open_methods(names: Sequence[str], base: Path) -> dict[str, HeatmapMethod]:
    """Open each method by its name, files relative to ``base``.

    Raises
    ------
    ForetellError
        A method that cannot be opened, or two whose heatmaps would have the same file names.
    """
    methods = {name: open_method(name, base) for name in names}
    counts = Counter(file_name(method) for method in methods.values())
    for name, method in methods.items():
        if counts[file_name(method)] > 1:
            raise ForetellError(
                f"Two methods would write files called IMAGE.{file_name(method)}: {name} is one. Give them in two "
                "commands with different --out."
            )
    return methods


def assign_parameters(methods: Mapping[str, HeatmapMethod], given: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Assign to each method its own of the parameters.

    Each method takes the parameters that it declares; a parameter that none of them declares is refused.
    """
    names = {name: {p.name for p in list_parameters(method)} for name, method in methods.items()}
    known = set().union(*names.values())

    def own(name: str) -> dict[str, str]:
        return {k: v for k, v in given.items() if k in names[name] or k not in known}

    return {name: parse_parameters(method, own(name)) for name, method in methods.items()}


def refuse_uncovered(
    methods: Mapping[str, HeatmapMethod], parameters: Mapping[str, Mapping[str, Any]], names: Sequence[str]
) -> None:
    """Refuse images for which a folder of heatmaps has none, before anything is computed."""
    records = [ImageRecord((name,), (0, 0), None) for name in names]
    for name, method in methods.items():
        if isinstance(method, HeatmapFolder):
            method.refuse_missing(records, parameters[name].get("layout", "images"))
