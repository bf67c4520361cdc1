"""``units``: images synthesised for a class or unit of a network, and images of a set that drive it most."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer

from dashboard.cli.options import Model
from dashboard.cli.terminal import Bars, say


def units(
    model: Model = "scenes",
    unit: Annotated[
        str | None, typer.Option(help="LAYER:CHANNEL, or LAYER:CHANNEL:ROW,COLUMN for one position.")
    ] = None,
    category: Annotated[
        str | None, typer.Option("--class", help="A class, by name or index, instead of a unit.")
    ] = None,
    how: Annotated[
        str,
        typer.Option(
            help="fourier (natural waves of colour), maco (waves as strong as in the images of --images, with what "
            "mattered less more transparent), pixels (of bounded norm) or sampled (drawn from a deep belief network, "
            "such as scenes:belief, with the unit clamped to 1)."
        ),
    ] = "fourier",
    starts: Annotated[int, typer.Option(help="Random starting images, each of which ends at its own maximum.")] = 4,
    steps: Annotated[int, typer.Option(help="Steps of gradient ascent from each start.")] = 128,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    images: Annotated[
        str | None,
        typer.Option(
            help="A folder, a pattern, or scenes: find the nine that drive it most, and measure the spectrum for maco."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("units"),
) -> None:
    """Synthesise images that drive a unit: writes a sheet (.png), the inputs (.npz) and the metadata (.json).

    With --images also the nine images of a set that drive it most, each with the unit's receptive field and its
    projection by a deconvnet (.top.png). With --how sampled, of a deep belief network, the mean of the images that it
    draws with the unit clamped to 1 (E[x | h = 1]), some of them, and images that maximise the unit.

    Example: python foretell.py units --unit features.3.0:12 --how maco --images scenes --out units
    """
    from core.units.maximise import Parameterisation
    from inquiry.units.sampled_units import HOW
    from inquiry.units.units import UnitQuery, VisualisationSettings, visualise_files

    if how == HOW:
        _write_sampled(model, unit, category or images, (starts, steps, seed), out)
        return
    settings = VisualisationSettings(cast(Parameterisation, how), starts, steps, seed)
    with Bars() as progress:
        written = visualise_files(UnitQuery(model, unit, category, settings, images), out, progress)
    for line in (*written.warnings, *map(str, written.files)):
        say(line)


def _write_sampled(model: str, unit: str | None, foreign: str | None, numbers: tuple[int, int, int], out: Path) -> None:
    """Write what is drawn with a unit clamped; ``numbers`` are starts, steps and seed."""
    from core.errors import ForetellError
    from inquiry.units.sampled_units import SampledQuery, sampled_files

    if unit is None or foreign is not None:
        raise ForetellError("--how sampled draws of a hidden unit: give --unit LAYER:CHANNEL, no --class, no --images.")
    with Bars() as progress:
        written = sampled_files(SampledQuery(model, unit, *numbers), out, progress)
    for line in (*written.warnings, *map(str, written.files)):
        say(line)
