"""The method of a study about attributes, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from study.bundle import Manifest
from study.plan.attributes import COLUMNS


def describe_grids(manifest: Manifest, before: str) -> Iterator[str]:
    """Describe the grids of images and the attributes that participants chose from; ``before`` says what came first."""
    settings, standard = manifest.config["attributes"], manifest.sets["standard"]
    first, second = manifest.classifier["classes"]
    count = len(manifest.trials)
    yield f"Each participant responded to {count} trial{'s' if count != 1 else ''}{before}."
    yield (
        f"Each trial showed a grid of {settings['images']} images of its own, drawn at random from {standard['name']}, "
        f"half of them of the class {first} and half of the class {second}, in {COLUMNS} columns by the AI's "
        "confidence in one of the two classes over the other (the input/output grid of Sixt et al., 2022)."
    )
    yield (
        f"Participants chose from {_list_names(settings['used'] + settings['unused'])}, or none of them, in an order "
        f"drawn for each participant. The AI uses {_list_names(settings['used'])}; it does not use "
        f"{_list_names(settings['unused'])}. Each attribute of a trial is a row of the analysis."
    )


def _list_names(names: list[str]) -> str:
    """List attributes in quotation marks."""
    each = [f"“{name}”" for name in names]
    return each[0] if len(each) == 1 else f"{', '.join(each[:-1])} and {each[-1]}"
