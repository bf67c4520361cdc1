"""``uncertainty``: the uncertainty of a network's predictions, from repeated passes under noise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dashboard.cli.options import Model, parse_pairs, parse_settings
from dashboard.cli.terminal import Bars, say


def uncertainty(
    model: Model = "scenes",
    images: Annotated[str | None, typer.Option(help="Images without labels: a folder or a pattern.")] = None,
    image_set: Annotated[str, typer.Option("--set", help="Or images with labels: an image set.")] = "scenes",
    setting: Annotated[list[str] | None, typer.Option(help="A setting of the set: name=value. Repeatable.")] = None,
    sampler: Annotated[str, typer.Option(help="The source of noise; --list shows all.")] = "inserted_dropout",
    passes: Annotated[int, typer.Option(help="Number of passes.")] = 100,
    param: Annotated[list[str] | None, typer.Option(help="k=v, a parameter of the sampler. Repeatable.")] = None,
    prior: Annotated[Path | None, typer.Option(help="A file of the command prior, for laplace.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("uncertainty"),
    list_samplers: Annotated[bool, typer.Option("--list", help="Print the samplers and stop.")] = False,
) -> None:
    """Measure the uncertainty of each prediction: writes MODEL.SAMPLER.csv (one row per image) and .json (the report).

    With true classes (an image set) the report says how well each measure detects errors. After an interruption the
    same command continues.

    Example: python foretell.py uncertainty --setting split=adversarial --param rate=0.2 --out uncertainty
    """
    from core.parameters import summary
    from core.uncertainty import SAMPLERS
    from inquiry.debugging.uncertainty import UncertaintyQuery, uncertainty_files

    if list_samplers:
        for name in SAMPLERS:
            say(f"{name}: {summary(SAMPLERS[name])}")
        return
    request = UncertaintyQuery(
        model=model,
        images=images,
        image_set=image_set,
        settings=parse_settings(setting or []),
        sampler=sampler,
        passes=passes,
        parameters=parse_pairs(param or [], "--param", "name=value"),
        prior=prior,
        seed=seed,
    )
    with Bars() as progress:
        files = uncertainty_files(request, out, progress)
    for file in files:
        say(str(file))
