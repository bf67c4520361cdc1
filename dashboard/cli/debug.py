"""``debug``: where a network errs in an image set, and which labels are likely to be wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dashboard.cli.options import Model, parse_settings
from dashboard.cli.terminal import Bars, say


def debug(
    model: Model = "scenes",
    image_set: Annotated[str, typer.Option("--set", help="Images with labels: an image set.")] = "scenes",
    setting: Annotated[list[str] | None, typer.Option(help="A setting of the set: name=value. Repeatable.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("debugging"),
) -> None:
    """Find error slices, likely label errors and outliers: writes MODEL.debugging.csv, MODEL.slices.csv and .json.

    The first has one row per image, the second one per group of similar images. After an interruption the same
    command continues.

    Example: python foretell.py debug --setting split=standard --setting size=2000 --out debugging
    """
    from core.debugging.slices import ErrorSlices
    from inquiry.debugging.debugging import DebuggingQuery, debugging_files
    from inquiry.debugging.slices import describe_result, describe_slice, format_slice

    with Bars() as progress:
        results, written = debugging_files(
            DebuggingQuery(model, image_set, parse_settings(setting or [])), out, progress
        )
    if isinstance(results.slices, ErrorSlices):
        say(describe_result(results.slices, results.predictions))
        for k, one in enumerate(results.slices.slices, 1):
            say(format_slice(k, one, describe_slice(one, results.images, results.predictions, results.class_names)))
    else:
        say(results.slices)
    say(f"{len(results.find_label_errors())} likely label errors.")
    for file in written:
        say(str(file))
