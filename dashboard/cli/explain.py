"""``explain``: heatmaps of images, as arrays and as image files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dashboard.cli.options import Engine, Model, Workers, parse_pairs
from dashboard.cli.terminal import Bars, say


def explain(
    image: Annotated[list[Path] | None, typer.Option(help="An image, a folder of images, or a pattern.")] = None,
    more: Annotated[list[Path] | None, typer.Argument(metavar="[IMAGE]...", help="More images.")] = None,
    model: Model = "scenes",
    method: Annotated[str, typer.Option(help="Methods, with commas; --list names all.")] = "bayesian_teaching",
    target: Annotated[str, typer.Option(help="A class index, a class name, or 'top': the predicted class.")] = "top",
    param: Annotated[list[str] | None, typer.Option(help="k=v, for the methods that accept it. Repeatable.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("heatmaps"),
    workers: Workers = None,
    engine: Engine = "processes",
    list_methods: Annotated[bool, typer.Option("--list", help="Print the methods and stop.")] = False,
) -> None:
    """Compute heatmaps of images: writes IMAGE.METHOD.npy (H, W float32), .png and .json (the certificate).

    Existing files are kept: after an interruption the same command continues.

    Example: python foretell.py explain --model scenes --image fish.png --method grad_cam,gradient --out heatmaps
    """
    from inquiry.files.explain import ExplanationQuery, explain_files

    if list_methods:
        _list_methods()
        return
    request = ExplanationQuery(
        model=model,
        methods=tuple(method.split(",")),
        target=target,
        parameters=parse_pairs(param or [], "--param", "name=value"),
        seed=seed,
    )
    with Bars() as progress:
        outcome = explain_files(request, [*(image or []), *(more or [])], out, progress, workers=workers, engine=engine)
    for name, count in outcome.warned.items():
        what = f"{count:,} heatmaps of {name} have warnings" if count > 1 else f"1 heatmap of {name} has a warning"
        say(f"{what} (see the .json files). {outcome.warnings[name]}")
    for note, maps in outcome.notes.items():
        say(f"{maps:,} heatmaps: {note}")
    outcome.complain()  # last: what is said of the others holds all the same
    heatmaps = "heatmap" if outcome.n_made == 1 else "heatmaps"
    say(
        f"{outcome.n_made:,} {heatmaps} written to {out}"
        + (f", {outcome.n_kept:,} existed." if outcome.n_kept else ".")
    )


def _list_methods() -> None:
    from core.attribution import METHODS
    from core.attribution.outside.opening import SPELLINGS, open_registered
    from core.errors import ForetellError
    from core.parameters import summary

    for name in METHODS:
        try:
            say(f"{name}: {summary(open_registered(name))}")
        except ForetellError as error:  # an installed package that fails takes nothing else with it
            say(f"{name}: {error}")
    for name, meaning in SPELLINGS.items():
        say(f"{name}: {meaning}")
    for sentence in METHODS.conflicts:
        say(sentence)
