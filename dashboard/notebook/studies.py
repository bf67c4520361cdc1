"""A study file from what a notebook shows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.errors import ForetellError
from dashboard.notebook.explanations import Explanations
from dashboard.notebook.networks import source_of
from study.plan import config
from study.workspace.files import write_whole

HEAD = (
    "# A study file. Every key: docs/reference/study-file.md. Check it with the command build and its option --check\n"
)
SETS = ("pool", "standard", "adversarial")


def write_study(
    file: str | Path,
    explanations: Explanations,
    *,
    pool: str | Mapping[str, Any],
    standard: str | Mapping[str, Any],
    adversarial: str | Mapping[str, Any],
    method: str = "",
    title: str = "What will the AI call this image?",
    categories: int = 10,
) -> Path:
    """Write a study file that shows participants the explanations of these heatmaps: same network, method and settings.

    Parameters
    ----------
    file
        Where to write it: ``NAME.toml``; NAME is the study's name.
    pool, standard, adversarial
        The image sets: a folder with one subfolder for each category, or ``{"set": "scenes", "split": "pool"}``.
    method
        One of the explanations' methods; their first by default.
    categories
        How many categories the trials are about.

    Raises
    ------
    ForetellError
        A file that exists, a method that is not among the explanations, or settings that make no study.
    """
    path, method = Path(file), method or explanations.methods[0]
    if path.exists():
        raise ForetellError(f"{path} exists already: give another name, so that no study file is lost.")
    if method not in explanations.methods:
        raise ForetellError(f"These explanations have no method {method!r}: {', '.join(explanations.methods)}.")
    settings: dict[str, Mapping[str, Any]] = {
        "study": {"name": path.stem, "title": title, "seed": explanations.seed},
        "classifier": {"model": source_of(explanations.classifier)},
        **{f"sets.{name}": _set(given) for name, given in zip(SETS, (pool, standard, adversarial), strict=True)},
        "trials": {"categories": categories},
        "saliency": {"method": method},
        "saliency.parameters": explanations.parameters[method],
    }
    text = HEAD + "".join(_section(name, values) for name, values in settings.items())
    write_whole(path, text.encode())
    try:
        config.read(path)
    except ForetellError:
        path.unlink()
        raise
    return path


def _set(given: str | Mapping[str, Any]) -> Mapping[str, Any]:
    return {"set": "folder", "path": given} if isinstance(given, str) else given


def _section(name: str, values: Mapping[str, Any]) -> str:
    """Write a section; strings, numbers and truth values are the same in TOML as in JSON."""
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items() if value is not None]
    return "\n".join([f"\n[{name}]", *lines, ""])
