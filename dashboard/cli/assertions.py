"""``assertions``: a user's own rules about a network's predictions, run over an image set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dashboard.cli.options import Model, parse_settings
from dashboard.cli.terminal import Bars, say


def assertions(
    file: Annotated[
        Path, typer.Argument(help="A Python file of functions (image, prediction) or (history, n=5). It is executed.")
    ],
    model: Model = "scenes",
    images: Annotated[str | None, typer.Option(help="Images without labels: a folder or a pattern.")] = None,
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

    docs/how-to/write-rules.md shows such files. Rules may be about the last n images of a stream, whose order --order
    gives. After an interruption the same command continues.

    Example: python foretell.py assertions rules.py --setting split=adversarial --setting size=200 --out assertions
    """
    from inquiry.assertions.assertions import AssertionQuery, assertion_files

    request = AssertionQuery(file, model, images, image_set, parse_settings(setting or []), limit, order)
    with Bars() as progress:
        asserted, files = assertion_files(request, out, progress)
    for name, record in asserted.report["assertions"].items():
        say(f"{name}: {_describe_history(record) if 'window' in record else _in_words(record)}")
    for written in files:
        say(str(written))


def _in_words(record: dict[str, Any]) -> str:
    return f"broken by {record['broken']:,} of {record['applied']:,} images ({_format_share(record)})"


def _describe_history(record: dict[str, Any]) -> str:
    windows = f"{record['broken']:,} of {record['applied']:,} windows of {record['window']} images"
    said = f"broken in {windows} ({_format_share(record)})"
    if record["broken"]:
        said += f"; {len(record['violations']):,} of these share no image"
    if (flagged := record["precision"]) is not None:
        said += f"; an error is in {flagged['errors']:,} of {flagged['windows']:,} of them ({_format_share(flagged)})"
    if flagged is not None and (other := record["elsewhere"]) is not None:
        said += f", and in {other['errors']:,} of {other['windows']:,} where the rule holds ({_format_share(other)})"
    return said


def _format_share(record: dict[str, Any]) -> str:
    return f"{record['share']:.1%}, 95%: {record['low']:.1%} to {record['high']:.1%}"
