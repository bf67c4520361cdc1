"""``assertions``: a user's own rules about a network's answers, run over a set of pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dashboard.cli.options import parse_settings
from dashboard.cli.terminal import Bars, say


def assertions(
    file: Annotated[Path, typer.Argument(help="A Python file of functions (picture, answer). It is executed.")],
    model: Annotated[str, typer.Option(help="scenes, a torchvision name, or FILE.py:build.")] = "scenes",
    pictures: Annotated[str | None, typer.Option(help="Pictures without labels: a folder or a pattern.")] = None,
    image_set: Annotated[str, typer.Option("--set", help="Or pictures with labels: an image set.")] = "scenes",
    setting: Annotated[list[str] | None, typer.Option(help="A setting of the set: name=value. Repeatable.")] = None,
    limit: Annotated[float, typer.Option(help="Seconds that an assertion may take for a picture.")] = 60.0,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("assertions"),
) -> None:
    """Which pictures break your own rules: writes MODEL.FILE.csv (one row a picture) and .json (the report).

    docs/how-to/debug-a-model.md shows such a file. The same command goes on after an interruption.

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
    return f"broken by {found['broken']:,} of {found['applied']:,} pictures ({found['share']:.1%}, 95 %: {interval})"
