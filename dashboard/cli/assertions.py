"""``assertions``: a user's own rules about a network's predictions, run over an image set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dashboard.cli.options import Model, parse_settings
from dashboard.cli.terminal import Bars, say


def assertions(
    file: Annotated[Path, typer.Argument(help="A Python file of functions (picture, answer). It is executed.")],
    model: Model = "scenes",
    pictures: Annotated[str | None, typer.Option(help="Images without labels: a folder or a pattern.")] = None,
    image_set: Annotated[str, typer.Option("--set", help="Or images with labels: an image set.")] = "scenes",
    setting: Annotated[list[str] | None, typer.Option(help="A setting of the set: name=value. Repeatable.")] = None,
    limit: Annotated[float, typer.Option(help="Time limit of an assertion per image, seconds.")] = 60.0,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("assertions"),
) -> None:
    """Find the images that break your own rules: writes MODEL.FILE.csv (one row per image) and .json (the report).

    docs/how-to/debug-a-model.md shows such a file. After an interruption the same command continues.

    Example: python foretell.py assertions rules.py --setting split=adversarial --setting size=200 --out assertions
    """
    from study.inquiry.assertions import AssertionQuery, assertion_files

    request = AssertionQuery(file, model, pictures, image_set, parse_settings(setting or []), limit)
    with Bars() as progress:
        asserted, files = assertion_files(request, out, progress)
    for name, found in asserted.report["assertions"].items():
        say(f"{name}: {_in_words(found)}")
    for written in files:
        say(str(written))


def _in_words(found: dict[str, Any]) -> str:
    interval = f"{found['low']:.1%} to {found['high']:.1%}"
    return f"broken by {found['broken']:,} of {found['applied']:,} images ({found['share']:.1%}, 95%: {interval})"
