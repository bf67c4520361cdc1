"""``concepts``: the human concepts a network relies on for a class."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dashboard.cli.options import Model, choose_settings, parse_settings
from dashboard.cli.terminal import Bars, say

COLUMNS = {
    "tcav": ("concept", "layer", "score", "p_value", "accuracy", "causal", "causal_error", "observed"),
    "vae": ("concept", "effect", "effect_low", "effect_high", "decoded", "reencoded", "causal", "observed", "kept",
            "shown"),
}  # fmt: skip
"""Columns of the table that are printed; the file has them all."""


def concepts(
    target: Annotated[str, typer.Option(help="The class.")],
    concept: Annotated[list[str], typer.Option(help="FACTOR=VALUE, FACTOR, or a folder of images. Repeatable.")],
    model: Model = "scenes",
    by: Annotated[
        Literal["tcav", "vae"],
        typer.Option(help="tcav: test the concept in a layer. vae: draw the changed images by a VAE of your images."),
    ] = "tcav",
    image_set: Annotated[str, typer.Option("--set", help="Image set with images of the class.")] = "scenes",
    setting: Annotated[list[str] | None, typer.Option(help="A setting of the set: name=value. Repeatable.")] = None,
    random: Annotated[str | None, typer.Option(help="Folder of other images, for concepts given as folders.")] = None,
    layer: Annotated[
        list[str] | None, typer.Option(help="Of tcav: a layer; the last with spatial positions by default. Repeatable.")
    ] = None,
    count: Annotated[int | None, typer.Option(help="Of tcav: images per concept; 30 by default.")] = None,
    runs: Annotated[
        int | None,
        typer.Option(help="Of tcav: concept vectors per concept, each against other images; 10 by default."),
    ] = None,
    trainings: Annotated[int | None, typer.Option(help="Of vae: VAEs to train; 5 by default.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Of vae: passes over its images; 30 by default.")] = None,
    latent: Annotated[int | None, typer.Option(help="Of vae: entries of its code; 6 by default.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("concepts"),
    json: Annotated[bool, typer.Option("--json", help="Print the report instead of the table.")] = False,
) -> None:
    """Test the concepts a class relies on: writes MODEL.CLASS.csv (a row per concept and layer) and .json (the report).

    TCAV with a test against random concepts. If the images of a set can be changed (scenes: context, object, colour;
    bars: colour, orientation), also the causal effect of the concept on the class's probability, and the association
    in observed images. With --by vae, for images that cannot be changed, a conditional VAE learns to draw them with and
    without the concept, and the effect on what it draws is written as MODEL.CLASS.vae.csv and .json; it is refused
    where the VAE's reconstructions do not keep the predictions. After an interruption the same command continues.

    Example: python foretell.py concepts --target fish --concept context --concept colour=green
    """
    tcav: dict[str, int | None] = {"count": count, "runs": runs}
    vae = {"trainings": trainings, "epochs": epochs, "latent": latent}
    own = choose_settings(
        f"--by {by}", *((vae, {"layer": len(layer) if layer else None, **tcav}) if by == "vae" else (tcav, vae))
    )
    images = {"image_set": image_set, "settings": parse_settings(setting or []), "random": random, "seed": seed}
    asked: dict[str, Any] = {"model": model, "target": target, "concepts": tuple(concept), **images, **own}
    with Bars() as progress:
        csv, report = _write(by, asked, tuple(layer or ()), out, progress)
    if json:
        say(report.read_text(encoding="utf-8"))
        return
    _print_table(csv, by)
    say(f"{csv}\n{report}")


def _write(by: str, asked: dict[str, Any], layers: tuple[str, ...], out: Path, progress: Bars) -> tuple[Path, Path]:
    """Ask the question, and write table and report."""
    if by == "vae":
        from inquiry.concepts.concept_vae import VaeQuery, vae_files

        return vae_files(VaeQuery(**asked), out, progress)
    from inquiry.concepts.concepts import ConceptQuery, concept_files

    return concept_files(ConceptQuery(**asked, layers=layers), out, progress)


def _print_table(csv: Path, by: str) -> None:
    """Print the columns of the question, and below them the warnings of a VAE."""
    import pandas as pd

    table = pd.read_csv(csv, keep_default_na=True)
    shown = table[list(COLUMNS[by])]
    say(shown.to_string(index=False, float_format=lambda value: f"{value:.3f}", na_rep="-"))
    if by == "vae":
        warned = table[["concept", "warning"]].dropna()
        for name, warning in warned.itertuples(index=False):
            say(f"{name}: {warning}")
