"""``concepts``: what a network relies on for a class, in human concepts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dashboard.cli.options import parse_settings
from dashboard.cli.terminal import Bars, say


def concepts(
    target: Annotated[str, typer.Option(help="The class.")],
    concept: Annotated[list[str], typer.Option(help="FACTOR=VALUE, FACTOR, or a folder of pictures. Repeatable.")],
    model: Annotated[str, typer.Option(help="scenes, a torchvision name, or FILE.py:build.")] = "scenes",
    image_set: Annotated[str, typer.Option("--set", help="Image set with pictures of the class.")] = "scenes",
    setting: Annotated[list[str] | None, typer.Option(help="A setting of the set: name=value. Repeatable.")] = None,
    random: Annotated[str | None, typer.Option(help="Folder of other pictures, for concepts that are folders.")] = None,
    layer: Annotated[
        list[str] | None, typer.Option(help="A layer; the last with places by default. Repeatable.")
    ] = None,
    count: Annotated[int, typer.Option(help="Pictures of each concept.")] = 30,
    runs: Annotated[int, typer.Option(help="Vectors of each concept, each against other pictures.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("concepts"),
    json: Annotated[bool, typer.Option("--json", help="Print the report instead of the table.")] = False,
) -> None:
    """What a network relies on for a class: writes MODEL.CLASS.csv (a row a concept and layer) and .json (the report).

    TCAV with a test against concepts that are none; where a set's pictures can be changed (scenes: context, object,
    colour; bars: colour, orientation), what intervening does to the class's probability, and what mere observation
    would make of it. The same command goes on after an interruption.

    Example: python foretell.py concepts --target fish --concept context --concept colour=green
    """
    import pandas as pd

    from study.inquiry.concepts import ConceptQuery, concept_files

    request = ConceptQuery(
        model=model,
        target=target,
        concepts=tuple(concept),
        random=random,
        image_set=image_set,
        settings=parse_settings(setting or []),
        layers=tuple(layer or []),
        pictures=count,
        runs=runs,
        seed=seed,
    )
    with Bars() as progress:
        csv, report = concept_files(request, out, progress)
    if json:
        say(report.read_text(encoding="utf-8"))
        return
    shown = ["concept", "layer", "score", "p_value", "accuracy", "causal", "causal_error", "observed"]
    say(pd.read_csv(csv)[shown].to_string(index=False, float_format=lambda value: f"{value:.3f}", na_rep="-"))
    say(f"{csv}\n{report}")
