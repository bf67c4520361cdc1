"""Options shared by several commands."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from core.errors import ForetellError

Model = Annotated[
    str,
    typer.Option(
        help="scenes, scenes:NAME (docs/zoo.md), bars, bars:belief, torchvision:NAME, timm:NAME, hf:NAME, "
        "clip:NAME?names=FILE, an exported program, or FILE.py:build (docs/how-to/add-a-model.md)."
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Processes that share the work, each on the next GPU. Default: one per core."),
]
Engine = Annotated[str, typer.Option(help="processes (on this machine), or ray (must be installed).")]

CommaMeaning = Annotated[
    Literal["decimal", "thousands"] | None,
    typer.Option(help="What commas in a CSV's numbers separate; needed where every number is like 1,234."),
]


def parse_pairs(texts: list[str], option: str, form: str) -> dict[str, str]:
    """Parse ``["a=b", ...]`` as a mapping; ``option`` and ``form`` (``"name=value"``) appear in error messages."""
    for text in texts:
        if "=" not in text:
            raise ForetellError(f"{option} {text!r} is not of the form {form}.")
    return {name: value for name, _, value in (text.partition("=") for text in texts)}


def parse_settings(texts: list[str]) -> dict[str, Any]:
    """Parse ``--setting`` of an image set as in a study file: whole numbers become numbers."""
    given = parse_pairs(texts, "--setting", "name=value")
    return {name: int(value) if value.isdecimal() else value for name, value in given.items()}


def choose_settings(option: str, own: dict[str, int | None], foreign: dict[str, int | None]) -> dict[str, int]:
    """Return the settings given for what ``option`` (``"--how cells"``) chooses, and refuse those of another choice.

    Raises
    ------
    ForetellError
        A setting of another choice was given.
    """
    wrong = [f"--{name}" for name, value in foreign.items() if value is not None]
    if wrong:
        raise ForetellError(f"{wrong[0]} does not apply to {option}: leave it out.")
    return {name: value for name, value in own.items() if value is not None}
