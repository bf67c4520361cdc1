"""Counterfactuals of a user's own image files that a generator draws: the nearest image with another prediction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from core.attribution.method import versions
from core.concepts.vae import fit_vae
from core.drawing.rendering import tile_images
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.robustness.manifold import GeneratedCounterfactual, Manifold, find_on_manifold, measure_agreement
from core.shares import Share
from core.types import Progress, silent
from inquiry.counterfactuals.counterfactuals import ANY, SIDE, WrittenCounterfactual
from inquiry.files.image_files import find_images, open_image
from inquiry.files.targets import resolve_target
from study.network.sources import open_classifier
from study.workspace.files import write_whole

LEAST, MOST = 60, 5000
"""Images from which a generator is learned: at least, and at most."""
KEPT = 0.8
"""Share of held-out images whose prediction the reconstruction must keep."""
HELD_OUT = 3
"""Every third image is held out."""
EPOCHS, LATENT = 60, 16
"""Passes of a generator over its images, and entries of its code."""


@dataclass(frozen=True)
class GeneratedQuery:
    """Images to change, images to learn to draw from, and the class (index, name or ``any``) to change to.

    ``epochs`` and ``latent`` are those of the generator: passes over its images, and entries of its code.
    """

    model: str
    images: Sequence[Path]
    others: Sequence[Path]
    to: str = ANY
    epochs: int = EPOCHS
    latent: int = LATENT
    seed: int = 0


def write_generated(query: GeneratedQuery, out: Path, progress: Progress = silent) -> list[WrittenCounterfactual]:
    """Write ``IMAGE.generated.png`` and ``.json`` for each image, with a generator learned from other images.

    The generator is a variational autoencoder of two thirds of the other images. Of the rest its reconstructions have
    to keep the predictions, or nothing is written.

    Raises
    ------
    ForetellError
        Files that are no images, too few or too many of them, reconstructions that do not keep the predictions, or what
        `find_on_manifold` refuses.
    """
    classifier = open_classifier(query.model, Path.cwd())
    images, files = find_images(query.images), list(find_images(query.others).values())
    to = None if query.to == ANY else resolve_target(classifier, query.to)
    inputs = _read_inputs(classifier, files)
    manifold, kept = learn_manifold(
        classifier, inputs, epochs=query.epochs, latent=query.latent, seed=query.seed, progress=progress
    )
    counterfactuals = []
    for name, file in images.items():
        inputs = classifier.preprocess(open_image(file))
        try:
            result = find_on_manifold(classifier, manifold, inputs, to)
        except ForetellError as error:
            raise ForetellError(f"{file}: {error}") from None
        counterfactuals.append((name, file, inputs, result))
    facts = {"model": query.model, "fingerprint": classifier.fingerprint, "learned_from": len(files),
             "epochs": query.epochs, "latent": query.latent, "seed": query.seed, "kept": list(kept)}  # fmt: skip
    return [_write(out / f"{name}.generated", classifier, facts | {"image": str(file)}, inputs, result)
            for name, file, inputs, result in counterfactuals]  # fmt: skip


def _read_inputs(classifier: Classifier, files: Sequence[Path]) -> Tensor:
    if len(files) > MOST:
        raise ForetellError(
            f"A generator is learned from at most {MOST:,} images, and {len(files):,} were given: give fewer."
        )
    return torch.stack([classifier.preprocess(open_image(file)) for file in files])


def learn_manifold(
    classifier: Classifier,
    inputs: Tensor,
    *,
    epochs: int = EPOCHS,
    latent: int = LATENT,
    seed: int = 0,
    progress: Progress = silent,
) -> tuple[Manifold, Share]:
    """Fit a variational autoencoder to two thirds of inputs (N, C, H, W); return it with what it keeps of the rest.

    Raises
    ------
    ForetellError
        Fewer than `LEAST` images, or reconstructions that keep the prediction of less than `KEPT` of those held out.
    """
    if len(inputs) < LEAST:
        raise ForetellError(
            f"A generator is learned from {LEAST} images or more, and {len(inputs)} were given: give more, or exchange "
            "cells instead."
        )
    if epochs < 1 or not 1 <= latent <= 256:
        raise ForetellError(f"epochs={epochs}, latent={latent}: give at least 1 epoch, and 1 to 256 entries.")
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(inputs), generator=generator)
    held, learned = order[::HELD_OUT], order[torch.arange(len(order)) % HELD_OUT != 0]
    vae = fit_vae(
        inputs[learned],
        _make_conditions(len(learned)),
        (1,),
        epochs=epochs,
        latent=latent,
        generator=generator,
        progress=progress,
    )

    manifold = Manifold(
        encode=lambda images: vae.encode(images, _make_conditions(len(images)))[0],
        decode=lambda z: vae.decode(z, _make_conditions(len(z))),
    )
    kept = measure_agreement(classifier, manifold, inputs[held])
    if kept.value < KEPT:
        raise ForetellError(
            f"The reconstructions of the generator keep the prediction of {kept.value:.0%} ({kept.low:.0%} to "
            f"{kept.high:.0%}) of {len(held)} held-out images, and {KEPT:.0%} are needed: what it draws says nothing "
            f"about {classifier.name}. Give more or simpler images, or exchange cells instead."
        )
    return manifold, kept


def _make_conditions(count: int) -> Tensor:
    """Return the same condition (count, 1) for all images: this generator has nothing to be told."""
    return torch.zeros(count, 1, dtype=torch.long)


def _write(
    base: Path, classifier: Classifier, facts: dict[str, Any], inputs: Tensor, counterfactual: GeneratedCounterfactual
) -> WrittenCounterfactual:
    names = classifier.names.short
    sentence = describe_generated(counterfactual, names)
    share = partial(_name_probabilities, names, (counterfactual.old, counterfactual.new))
    facts |= {
        "predicted": names[counterfactual.old],
        "predicted_after": names[counterfactual.new],
        "probability": share(counterfactual.before),
        "probability_redrawn": share(counterfactual.redrawn),
        "probability_after": share(counterfactual.after),
        "distance": round(counterfactual.distance, 6),
        "distance_redrawn": round(counterfactual.distance_redrawn, 6),
        "moved": round(counterfactual.moved, 4),
        "farther": round(counterfactual.farther, 6),
        "sentence": sentence,
        "versions": versions(),
    }
    base.parent.mkdir(parents=True, exist_ok=True)
    file = base.with_name(f"{base.name}.png")
    drawn = draw_generated(classifier, inputs, counterfactual)
    tile_images(drawn, len(drawn), gap=0).save(file)
    write_whole(base.with_name(f"{base.name}.json"), (json.dumps(facts, indent=1, ensure_ascii=False) + "\n").encode())
    return WrittenCounterfactual(file, sentence)


def _name_probabilities(names: Sequence[str], classes: Sequence[int], probabilities: Tensor) -> dict[str, float]:
    return {names[k]: round(float(probabilities[k]), 6) for k in classes}


def draw_generated(
    classifier: Classifier, inputs: Tensor, counterfactual: GeneratedCounterfactual
) -> list[Image.Image]:
    """Draw an input (C, H, W), its reconstruction, and the nearest drawn image with another prediction."""
    drawn = [classifier.render_input(one) for one in (inputs, counterfactual.reconstruction, counterfactual.image)]
    return [image.resize((SIDE, round(SIDE * image.height / image.width)), Image.Resampling.BICUBIC) for image in drawn]


def describe_generated(counterfactual: GeneratedCounterfactual, names: Sequence[str]) -> str:
    """Describe what the drawn image changes, and warn of one that is unlike those the generator learned from."""
    old, new = names[counterfactual.old], names[counterfactual.new]
    changed = (
        f"Of the images that the generator can draw, this is the nearest found that the AI predicts to be {new} "
        f"({float(counterfactual.after[counterfactual.new]):.0%}) and no longer {old}, which it predicts of the image "
        f"({float(counterfactual.before[counterfactual.old]):.0%}) and of its reconstruction "
        f"({float(counterfactual.redrawn[counterfactual.old]):.0%}). "
        f"The code moved by {counterfactual.moved:.1f} standard deviations."
    )
    if not counterfactual.is_unusual:
        return changed
    return (
        f"{changed} Caution: {counterfactual.farther:.1%} of the generator's codes are as unusual as this one, so the "
        "drawn image may not be typical of the set."
    )
