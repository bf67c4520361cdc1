"""``assertions``: a user's own rules about a network's predictions, run over an image set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dashboard.cli.options import Model, parse_settings
from dashboard.cli.terminal import Bars, say


def assertions(
    file: Annotated[
        Path, typer.Argument(help="A Python file of functions (picture, answer) or (history, n=5). It is executed.")
    ],
    model: Model = "scenes",
    pictures: Annotated[str | None, typer.Option(help="Images without labels: a folder or a pattern.")] = None,
    image_set: Annotated[str, typer.Option("--set", help="Or images with labels: an image set.")] = "scenes",
    setting: Annotated[list[str] | None, typer.Option(help="A setting of the set: name=value. Repeatable.")] = None,
    order: Annotated[
        str | None,
        typer.Option(
            help="For rules about a history, the order in which the images were taken: name (the numbers in file "
            "names), or a CSV file with columns image, order and perhaps stream."
        ),
    ] = None,
    limit: Annotated[float, typer.Option(help="Time limit of an assertion per image, seconds.")] = 60.0,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("assertions"),
) -> None:
    """Find the images that break your own rules: writes MODEL.FILE.csv (one row per image) and .json (the report).

    docs/how-to/debug-a-model.md shows such files. Rules may be about the last n images of a stream, whose order --order
    gives. After an interruption the same command continues.

    Example: python foretell.py assertions rules.py --setting split=adversarial --setting size=200 --out assertions
    """
    from study.inquiry.assertions import AssertionQuery, assertion_files

    request = AssertionQuery(file, model, pictures, image_set, parse_settings(setting or []), limit, order)
    with Bars() as progress:
        asserted, files = assertion_files(request, out, progress)
    for name, found in asserted.report["assertions"].items():
        say(f"{name}: {_describe_history(found) if 'window' in found else _in_words(found)}")
    for written in files:
        say(str(written))


def _in_words(found: dict[str, Any]) -> str:
    return f"broken by {found['broken']:,} of {found['applied']:,} images ({_format_share(found)})"


def _describe_history(found: dict[str, Any]) -> str:
    windows = f"{found['broken']:,} of {found['applied']:,} windows of {found['window']} images"
    said = f"broken in {windows} ({_format_share(found)})"
    if found["broken"]:
        said += f"; {len(found['violations']):,} of these share no image"
    if (flagged := found["precision"]) is not None:
        said += f"; an error is in {flagged['errors']:,} of {flagged['windows']:,} of them ({_format_share(flagged)})"
    if flagged is not None and (other := found["elsewhere"]) is not None:
        said += f", and in {other['errors']:,} of {other['windows']:,} where the rule holds ({_format_share(other)})"
    return said


def _format_share(found: dict[str, Any]) -> str:
    return f"{found['share']:.1%}, 95%: {found['low']:.1%} to {found['high']:.1%}"
