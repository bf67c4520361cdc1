"""Networks of torchvision: ``resnet50``, or ``resnet50:IMAGENET1K_V1`` for specific weights."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

import torch
from PIL import Image
from torch import Tensor

from core.errors import ForetellError
from core.loading import import_torchvision
from core.network.classifier import Classifier
from core.sources.spec import FORMS, ModelSpec, suggest_names


def load(spec: ModelSpec, device: torch.device) -> Classifier:
    """Load a torchvision network with its default weights, or those named after a colon."""
    spec.check_settings()
    name, _, tag = spec.name.partition(":")
    import_torchvision()
    models = importlib.import_module("torchvision.models")
    known = models.list_models(module=models)
    if name not in known:
        raise ForetellError(f"Unknown classifier {name!r}. {suggest_names(name, known, f'Give {FORMS}.')}")
    offered = models.get_model_weights(name)
    tags = offered.__members__
    if tag and tag not in tags:
        raise ForetellError(f"{name} has no weights {tag!r}. torchvision offers: {', '.join(tags) or 'none'}.")
    weights = tags[tag] if tag else offered.DEFAULT
    try:
        module = models.get_model(name, weights=weights)
    except OSError as error:
        hub = Path(torch.hub.get_dir()) / "checkpoints" / Path(weights.url).name
        why = f"{urlsplit(weights.url).hostname} cannot be reached from this machine: t"
        if not isinstance(error, URLError) or isinstance(error, HTTPError):
            why = f"{error}. T"
        raise ForetellError(
            f"{why}he weights of {name!r} could not be downloaded. Connect once, or put the file at {hub}."
        ) from error
    transforms = squash_images(weights) if spec.whole else weights.transforms()
    return Classifier(module, transforms, weights.meta["categories"], name=spec.title or spec.name, device=device)


def squash_images(weights: Any) -> Callable[[Image.Image], Tensor]:
    """Return transforms that resize the whole image to the input and normalise it as the weights demand."""
    (side,) = set(weights.transforms().crop_size)
    normalise = weights.transforms(resize_size=side, crop_size=side)

    def transforms(image: Image.Image) -> Tensor:
        squashed: Tensor = normalise(image.resize((side, side), Image.Resampling.BILINEAR))
        return squashed

    return transforms
