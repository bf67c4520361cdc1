"""Heatmaps of a user's own picture files."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps, UnidentifiedImageError

from core.attribution import METHODS
from core.classifier import Classifier
from core.errors import ForetellError
from core.parameters import parsed
from core.rendering import fitted, overlay, scale_of, with_scale
from core.types import Explanation, Progress, silent
from study.sources import open_classifier, plain

PICTURE_SIDE = 448
OPACITY = 0.8


@dataclass(frozen=True)
class Request:
    """What to explain and how; ``parameters`` as texts, checked against each method's declaration."""

    model: str
    methods: tuple[str, ...]
    target: str = "top"
    parameters: dict[str, str] = field(default_factory=dict)
    seed: int = 0


def explain_files(request: Request, images: Sequence[Path], out: Path, progress: Progress = silent) -> list[Path]:
    """Write ``<image>.<method>.npy`` (H, W) float32, ``.png`` and ``.json`` for each picture and method.

    Everything is checked before anything is computed.
    """
    if not images:
        raise ForetellError("No picture given. Add --image FILE, once for each picture.")
    chosen = {name: parsed(METHODS[name], request.parameters) for name in request.methods}
    pictures = [open_picture(path) for path in images]
    _refuse_same_stems(images)
    classifier = open_classifier(request.model, Path.cwd())
    targets = [resolve_target(classifier, request.target, picture) for picture in pictures]
    written = []
    for i, (path, picture, target) in enumerate(zip(images, pictures, targets, strict=True), 1):
        for name, parameters in chosen.items():
            explanation = METHODS[name](
                classifier,
                classifier.preprocess(picture)[None],
                [target],
                generator=torch.Generator().manual_seed(request.seed),
                **parameters,
            )
            written += _write(out / f"{path.stem}.{name}", explanation, picture, classifier)
        progress(i, len(images), "explaining")
    return written


def open_picture(path: Path) -> Image.Image:
    """A picture file as RGB, or the sentence that says what is wrong with it."""
    try:
        with Image.open(path) as picture:
            return ImageOps.exif_transpose(picture).convert("RGB")  # a phone's photograph, upright
    except FileNotFoundError:
        near = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*")], n=1)
        raise ForetellError(f"There is no picture {path}.{f' Did you mean {near[0]}?' if near else ''}") from None
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
        raise ForetellError(f"{path} cannot be read as a picture ({error}). Give a PNG, JPEG or WebP file.") from None


def resolve_target(classifier: Classifier, target: str, picture: Image.Image) -> int:
    """A class index from ``"top"``, an index, or a class name (any synonym)."""
    if target == "top":
        return int(classifier.logits(classifier.preprocess(picture)[None]).argmax())
    if target.lstrip("-").isdigit():
        if 0 <= int(target) < len(classifier.categories):
            return int(target)
        last = len(classifier.categories) - 1
        raise ForetellError(f"Target {target} is not a class of {classifier.name}: it has classes 0 to {last}.")
    names = {
        s.strip().casefold(): k for k, name in reversed(list(enumerate(classifier.categories))) for s in name.split(",")
    }
    if target.casefold() not in names:
        near = difflib.get_close_matches(target.casefold(), names, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(near)}?" if near else "Give a class index, a class name, or 'top'."
        raise ForetellError(f"{classifier.name} has no class {target!r}. {hint}")
    return names[target.casefold()]


def _refuse_same_stems(images: Sequence[Path]) -> None:
    stems = [path.stem for path in images]
    for path in images:
        if stems.count(path.stem) > 1:
            raise ForetellError(f"Two pictures are called {path.stem}: their files would overwrite each other.")


def _write(base: Path, explanation: Explanation, picture: Image.Image, classifier: Classifier) -> list[Path]:
    values, certificate = explanation.map[0], explanation.certificates[0]
    base.parent.mkdir(parents=True, exist_ok=True)
    npy, png, json_file = (base.with_name(f"{base.name}.{kind}") for kind in ("npy", "png", "json"))
    np.save(npy, values.numpy())
    seen = fitted(picture, classifier.input_shape[1:])
    size = (PICTURE_SIDE, round(PICTURE_SIDE * seen.height / seen.width))
    scale = scale_of(explanation)
    error = None if explanation.error is None else explanation.error[0]
    caption = (
        f"{certificate.method}: {plain(classifier.categories[certificate.target])} ({certificate.probability:.2f})"
    )
    drawn = Image.new("RGB", (2 * size[0], size[1]))
    drawn.paste(seen.resize(size, Image.Resampling.LANCZOS), (0, 0))
    drawn.paste(overlay(seen, scale.signed(values, error), size, OPACITY), (size[0], 0))
    with_scale(drawn, scale, caption).save(png)
    facts = certificate.as_dict() | {"category": classifier.categories[certificate.target]}
    json_file.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return [npy, png, json_file]
