"""``concepts``: the human concepts a network relies on for a class."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dashboard.cli.options import Model, parse_settings
from dashboard.cli.terminal import Bars, say


def concepts(
    target: Annotated[str, typer.Option(help="The class.")],
    concept: Annotated[list[str], typer.Option(help="FACTOR=VALUE, FACTOR, or a folder of images. Repeatable.")],
    model: Model = "scenes",
    image_set: Annotated[str, typer.Option("--set", help="Image set with images of the class.")] = "scenes",
    setting: Annotated[list[str] | None, typer.Option(help="A setting of the set: name=value. Repeatable.")] = None,
    random: Annotated[str | None, typer.Option(help="Folder of other images, for concepts given as folders.")] = None,
    layer: Annotated[
        list[str] | None, typer.Option(help="A layer; the last with spatial positions by default. Repeatable.")
    ] = None,
    count: Annotated[int, typer.Option(help="Images per concept.")] = 30,
    runs: Annotated[int, typer.Option(help="Concept vectors per concept, each against other images.")] = 10,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("concepts"),
    json: Annotated[bool, typer.Option("--json", help="Print the report instead of the table.")] = False,
) -> None:
    """Test the concepts a class relies on: writes MODEL.CLASS.csv (a row per concept and layer) and .json (the report).

    TCAV with a test against random concepts. If the images of a set can be changed (scenes: context, object, colour;
    bars: colour, orientation), also the causal effect of the concept on the class's probability, and the association
    in observed images. After an interruption the same command continues.

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
        count=count,
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
