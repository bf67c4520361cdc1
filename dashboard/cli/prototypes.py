"""``prototypes``: the parts of training images that a network with prototypes compares an image with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dashboard.cli.terminal import say


def prototypes(
    image: Annotated[list[Path], typer.Option(help="An image, a folder of images, or a pattern. Repeatable.")],
    model: Annotated[str, typer.Option(help="A network with prototypes.")] = "scenes:prototypes",
    target: Annotated[str, typer.Option(help="A class: an index, a name, or 'top'.")] = "top",
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("prototypes"),
) -> None:
    """Show the prototypes that add most to a class: writes IMAGE.CLASS.prototypes.png and .json.

    Only for networks that predict from prototypes, such as scenes:prototypes.

    Example: python foretell.py prototypes --image fish.png --target boat --out prototypes
    """
    from inquiry.counterfactuals.prototypes import PrototypeQuery, write_prototypes

    for one in write_prototypes(PrototypeQuery(model, tuple(image), target), out):
        say(f"{one.file}: {one.sentence}")
