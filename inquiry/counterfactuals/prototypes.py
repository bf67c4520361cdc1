"""Prototypes that a user's own images are compared with: drawn, and written with what each adds to the logit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from PIL import Image
from torch import Tensor

from core.attribution.method import versions
from core.concepts.prototypes import Match
from core.drawing.rendering import tile_images
from core.network.classifier import Classifier
from inquiry.files.image_files import find_images, open_image
from inquiry.files.targets import resolve_target
from study.conditions.prototypes.cards import describe_input, draw_matches
from study.network.sources import open_classifier
from study.workspace.files import write_whole

SIDE = 320
"""Width of a card, px."""


@dataclass(frozen=True)
class PrototypeQuery:
    """Images, and the class (index, name or ``top``, the predicted one) whose prototypes are shown."""

    model: str
    images: Sequence[Path]
    target: str = "top"


@dataclass(frozen=True)
class WrittenPrototypes:
    """One image's drawing, and a sentence about it."""

    file: Path
    sentence: str


def write_prototypes(query: PrototypeQuery, out: Path) -> list[WrittenPrototypes]:
    """Write ``IMAGE.CLASS.prototypes.png`` and ``.json`` for each image.

    Raises
    ------
    ForetellError
        A network without prototypes, files that are no images, or a class that the network does not have.
    """
    classifier = open_classifier(query.model, Path.cwd())
    return [_write(classifier, name, file, query, out) for name, file in find_images(query.images).items()]


def _write(classifier: Classifier, name: str, file: Path, query: PrototypeQuery, out: Path) -> WrittenPrototypes:
    inputs = classifier.preprocess(open_image(file))
    logits = classifier.logits(inputs[None])[0]
    asked = resolve_target(classifier, query.target)
    k = int(logits.argmax()) if asked is None else asked
    matches = describe_input(classifier, inputs, k)
    named = classifier.names.short[k]
    sentence = describe_matches(matches, named, float(logits[k]))
    facts: dict[str, Any] = {
        "image": str(file),
        "model": query.model,
        "fingerprint": classifier.fingerprint,
        "class": named,
        "logit": float(logits[k]),
        "prototypes": [asdict(match) for match in matches],
        "sentence": sentence,
        "versions": versions(),
    }
    out.mkdir(parents=True, exist_ok=True)
    base = out / f"{name}.{named}.prototypes"
    drawn = draw_input(classifier, inputs, matches)
    tile_images(drawn, len(drawn), gap=0).save(base.with_name(f"{base.name}.png"))
    write_whole(base.with_name(f"{base.name}.json"), (json.dumps(facts, indent=1, ensure_ascii=False) + "\n").encode())
    return WrittenPrototypes(base.with_name(f"{base.name}.png"), sentence)


def draw_input(classifier: Classifier, inputs: Tensor, matches: Sequence[Match]) -> list[Image.Image]:
    """Draw the cards of an input (C, H, W)."""
    seen = classifier.render_input(inputs)
    return draw_matches(classifier, seen, matches, (SIDE, round(SIDE * seen.height / seen.width)))


def describe_matches(matches: Sequence[Match], name: str, logit: float) -> str:
    """Describe what the matches add to the logit of a class."""
    adds = " and ".join(f"{match.contribution:.2f} (similarity {match.similarity:.2f})" for match in matches)
    return f"The parts shown add {adds} to the logit of {name}, which is {logit:.2f}."
