"""``counterfactual``: the few parts of an image to exchange, or the nearest image to draw, for another prediction."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dashboard.cli.options import Model, choose_settings
from dashboard.cli.terminal import Bars, say


def counterfactual(
    image: Annotated[list[Path], typer.Option(help="An image, a folder of images, or a pattern. Repeatable.")],
    other: Annotated[list[Path], typer.Option(help="Images to take parts from, named likewise. Repeatable.")],
    model: Model = "scenes",
    to: Annotated[str, typer.Option(help="The class to change to: an index, a name, or 'any'.")] = "any",
    how: Annotated[
        Literal["cells", "generated"],
        typer.Option(
            help="'cells': exchange cells. 'generated': draw the nearest image; --other are images to learn from."
        ),
    ] = "cells",
    grid: Annotated[int | None, typer.Option(help="Of cells: how many per side; 7 by default.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Of the generator: passes over its images; 60 by default.")] = None,
    latent: Annotated[int | None, typer.Option(help="Of the generator: entries of its code; 16 by default.")] = None,
    seed: Annotated[
        int, typer.Option(help="Random seed, of the random cells to compare with or of the generator.")
    ] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("counterfactuals"),
) -> None:
    """Find the fewest cells to exchange with another image: writes IMAGE.counterfactual.png and .json.

    Cells of a grid are exchanged with those in the same place, until the class of the other image is predicted. Of
    several other images it takes the one that needs the fewest cells. With --how generated, a variational autoencoder
    learns to draw from the other images, and the nearest image that it can draw with another prediction is written as
    IMAGE.generated.png and .json; it is refused where its reconstructions do not keep the predictions.

    Example: python foretell.py counterfactual --image fish.png --other boat.png --out counterfactuals
    """
    from inquiry.counterfactuals.counterfactuals import CounterfactualQuery, write_counterfactuals
    from inquiry.counterfactuals.generated import GeneratedQuery, write_generated

    cells, generated = {"grid": grid}, {"epochs": epochs, "latent": latent}
    own = choose_settings(f"--how {how}", *((generated, cells) if how == "generated" else (cells, generated)))
    with Bars() as progress:
        if how == "generated":
            written = write_generated(
                GeneratedQuery(model, tuple(image), tuple(other), to, seed=seed, **own), out, progress
            )
        else:
            written = write_counterfactuals(
                CounterfactualQuery(model, tuple(image), tuple(other), to, seed=seed, **own), out, progress
            )
    for one in written:
        say(f"{one.file}: {one.sentence}")
