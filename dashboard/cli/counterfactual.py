"""``counterfactual``: the few parts of an image that, exchanged with another image's, change the prediction."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dashboard.cli.options import Model
from dashboard.cli.terminal import Bars, say


def counterfactual(
    image: Annotated[list[Path], typer.Option(help="An image, a folder of images, or a pattern. Repeatable.")],
    other: Annotated[list[Path], typer.Option(help="Images to take parts from, named likewise. Repeatable.")],
    model: Model = "scenes",
    to: Annotated[str, typer.Option(help="The class to change to: an index, a name, or 'any'.")] = "any",
    grid: Annotated[int, typer.Option(help="Cells per side.")] = 7,
    seed: Annotated[int, typer.Option(help="Random seed, of the random cells to compare with.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("counterfactuals"),
) -> None:
    """Find the fewest cells to exchange with another image: writes IMAGE.counterfactual.png and .json.

    Cells of a grid are exchanged with those in the same place, until the class of the other image is predicted. Of
    several other images it takes the one that needs the fewest cells.

    Example: python foretell.py counterfactual --image fish.png --other boat.png --out counterfactuals
    """
    from study.inquiry.counterfactuals import CounterfactualQuery, write_counterfactuals

    query = CounterfactualQuery(model, tuple(image), tuple(other), to, grid, seed)
    with Bars() as progress:
        found = write_counterfactuals(query, out, progress)
    for one in found:
        say(f"{one.file}: {one.sentence}")
