"""Counterfactuals of a user's own image files: what to exchange with another image, drawn and described."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from core.attribution.method import versions
from core.drawing.rendering import mark_cells, tile_images
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.robustness.counterfactual import GRID, PLACES, Counterfactual, find_smallest
from core.types import Progress, silent
from inquiry.files.image_files import find_images, open_image
from inquiry.files.targets import resolve_target
from study.network.sources import open_classifier
from study.workspace.files import write_whole

SIDE = 320
"""Width of each of the three drawings, px."""
ANY = "any"
MOST = 64
"""Other images that are searched at most."""


@dataclass(frozen=True)
class CounterfactualQuery:
    """Images to change, images to take parts from, and the class (index, name or ``any``) to change to."""

    model: str
    images: Sequence[Path]
    others: Sequence[Path]
    to: str = ANY
    grid: int = GRID
    seed: int = 0


@dataclass(frozen=True)
class WrittenCounterfactual:
    """One image's counterfactual: its drawing, and a sentence about it."""

    file: Path
    sentence: str


def write_counterfactuals(
    query: CounterfactualQuery, out: Path, progress: Progress = silent
) -> list[WrittenCounterfactual]:
    """Write ``IMAGE.counterfactual.png`` and ``.json`` for each image, with the other image that needs fewest cells.

    Raises
    ------
    ForetellError
        Files that are no images, a class that the network does not have, or no other image with another prediction
        (or with the one asked for).
    """
    classifier = open_classifier(query.model, Path.cwd())
    images, others = find_images(query.images), find_images(query.others)
    names, inputs = _take_others(classifier, others, query)
    counterfactuals = []
    for done, (name, file) in enumerate(images.items()):
        image = classifier.preprocess(open_image(file))

        def report(step: int, steps: int, what: str, done: int = done) -> None:
            progress(done * steps + step, len(images) * steps, what)

        try:
            i, result = find_smallest(
                classifier, image, inputs, grid=query.grid, places=PLACES, seed=query.seed, progress=report
            )
        except ForetellError as error:
            raise ForetellError(f"{file}: {error}") from None
        drawn = draw_counterfactual(classifier, image, inputs[i], result)
        counterfactuals.append(
            _write(out / f"{name}.counterfactual", drawn, result, _Origin(file, names[i], classifier, query))
        )
    return counterfactuals


def _take_others(
    classifier: Classifier, others: dict[str, Path], query: CounterfactualQuery
) -> tuple[list[Path], Tensor]:
    """Return the other images' files and inputs (N, C, H, W); only those predicted to be a class, if one is named."""
    files = list(others.values())
    if len(files) > MOST:
        raise ForetellError(
            f"{len(files)} other images, of which each is searched with every cell: give at most {MOST} of them."
        )
    inputs = torch.stack([classifier.preprocess(open_image(file)) for file in files])
    k = None if query.to == ANY else resolve_target(classifier, query.to)
    if k is None:
        return files, inputs
    kept = torch.nonzero(classifier.logits(inputs).argmax(1) == k)[:, 0]
    if not len(kept):
        raise ForetellError(
            f"None of the {len(files)} other images is predicted to be {query.to}: give more of them, or another class."
        )
    return [files[i] for i in kept.tolist()], inputs[kept]


@dataclass(frozen=True)
class _Origin:
    """Where a counterfactual is from."""

    image: Path
    other: Path
    classifier: Classifier
    query: CounterfactualQuery


def _write(
    base: Path, drawn: Sequence[Image.Image], counterfactual: Counterfactual, origin: _Origin
) -> WrittenCounterfactual:
    names = origin.classifier.names.short
    sentence = describe_counterfactual(counterfactual, names)
    facts = {
        "image": str(origin.image),
        "other": str(origin.other),
        "model": origin.query.model,
        "fingerprint": origin.classifier.fingerprint,
        "grid": counterfactual.grid,
        "cells": [divmod(cell, counterfactual.grid) for cell in counterfactual.cells],
        "predicted": names[counterfactual.old],
        "predicted_after": names[counterfactual.new],
        "probability": {
            names[k]: round(float(counterfactual.before[k]), 6) for k in (counterfactual.old, counterfactual.new)
        },
        "probability_after": {
            names[k]: round(float(counterfactual.after[k]), 6) for k in (counterfactual.old, counterfactual.new)
        },
        "as_many_at_random": {
            "draws": len(counterfactual.as_many),
            "changed": int((counterfactual.as_many.argmax(1) == counterfactual.new).sum()),
        },
        "seed": origin.query.seed,
        "sentence": sentence,
        "versions": versions(),
    }
    base.parent.mkdir(parents=True, exist_ok=True)
    file = base.with_name(f"{base.name}.png")
    tile_images(drawn, len(drawn), gap=0).save(file)
    write_whole(base.with_name(f"{base.name}.json"), (json.dumps(facts, indent=1, ensure_ascii=False) + "\n").encode())
    return WrittenCounterfactual(file, sentence)


def draw_counterfactual(
    classifier: Classifier, inputs: Tensor, other: Tensor, counterfactual: Counterfactual
) -> tuple[Image.Image, Image.Image, Image.Image]:
    """Draw an input (C, H, W) and the other one with the cells to exchange, and the input with them exchanged."""
    image, source, exchanged = (
        _enlarge(classifier.render_input(one)) for one in (inputs, other, counterfactual.composite)
    )
    return (
        mark_cells(image, counterfactual.cells, counterfactual.grid),
        mark_cells(source, counterfactual.cells, counterfactual.grid),
        exchanged,
    )


def _enlarge(image: Image.Image) -> Image.Image:
    return image.resize((SIDE, round(SIDE * image.height / image.width)), Image.Resampling.BICUBIC)


def describe_counterfactual(counterfactual: Counterfactual, names: Sequence[str]) -> str:
    """Describe what the exchange changes, and what as many cells at random change."""
    count, total = len(counterfactual.cells), counterfactual.grid**2
    cells = "1 cell" if count == 1 else f"{count} cells"
    changed = int((counterfactual.as_many.argmax(1) == counterfactual.new).sum())
    old, new = names[counterfactual.old], names[counterfactual.new]
    before, after = counterfactual.before[counterfactual.old], counterfactual.after[counterfactual.new]
    return (
        f"With {cells} of {total} exchanged, the AI predicts {new} ({float(after):.0%}) and no longer {old} "
        f"({float(before):.0%}). None of them can be left out. As many cells at random change the prediction to "
        f"{new} in {changed} of {len(counterfactual.as_many)} draws."
    )
